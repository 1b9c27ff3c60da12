// Placeholder of the module SoraMedia until its first type lands.
