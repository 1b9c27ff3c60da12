import CLinux
import SoraWire

extension clinux_address {
    init(_ address: SocketAddress) {
        self.init()
        port = address.port
        switch address.ip {
        case .v4(let value):
            family = 4
            v4 = value
        case .v6(let high, let low, let scope):
            family = 6
            self.high = high
            self.low = low
            self.scope = scope
        }
    }

    /// Unspecified IPv4 if the kernel reported none.
    var socketAddress: SocketAddress {
        family == 6
            ? SocketAddress(.v6(high: high, low: low, scope: scope), port: port)
            : SocketAddress(.v4(v4), port: port)
    }
}
