// Placeholder of the module SoraMessages until its first type lands.
