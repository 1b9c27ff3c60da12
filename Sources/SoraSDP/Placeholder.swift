// Placeholder of the module SoraSDP until its first type lands.
