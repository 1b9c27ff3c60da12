// Placeholder of the module SoraEmulator until its first type lands.
