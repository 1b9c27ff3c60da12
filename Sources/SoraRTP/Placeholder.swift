// Placeholder of the module SoraRTP until its first type lands.
