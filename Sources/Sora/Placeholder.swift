// Placeholder of the module Sora until its first type lands.
