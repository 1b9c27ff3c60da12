// Placeholder of the module SoraSecureTransport until its first type lands.
