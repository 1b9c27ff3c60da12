/// Where sound comes from and goes to, as the backend tells it.
struct AudioRoute: Sendable, Equatable {
    struct Port: Sendable, Equatable {
        /// For people.
        var name: String
        var kind: Kind
        /// Identifies the port on this machine.
        var id: String
    }
    enum Kind: Sendable {
        case builtInMicrophone
        case headsetMicrophone
        case lineIn
        case bluetoothHandsFree
        case builtInSpeaker
        case headphones
        case lineOut
        case hdmi
        case bluetoothPlayback
        case usb
    }
    /// Why a route is another one than before.
    enum Change: Sendable {
        case deviceCame
        case deviceWent
        /// Somebody chose another one of the devices.
        case choice
        case unknown
    }

    var inputs: [Port]
    var outputs: [Port]
}
