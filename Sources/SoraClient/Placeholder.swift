// Placeholder of the module SoraClient until its first type lands.
