// Placeholder of the module SoraNetwork until its first type lands.
