// Placeholder of the module SoraICE until its first type lands.
