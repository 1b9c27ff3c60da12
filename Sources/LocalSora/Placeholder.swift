// Placeholder of the module LocalSora until its first type lands.
