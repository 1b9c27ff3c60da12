// Placeholder of the module SoraLoad until its first type lands.
