// Placeholder of the module SoraDevices until its first type lands.
