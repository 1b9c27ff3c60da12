// Placeholder of the module SoraCodecs until its first type lands.
