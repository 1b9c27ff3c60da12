// Placeholder of the module SoraHTTP until its first type lands.
