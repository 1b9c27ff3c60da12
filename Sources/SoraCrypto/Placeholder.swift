// Placeholder of the module SoraCrypto until its first type lands.
