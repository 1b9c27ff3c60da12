/// The SRTP protection profiles that we negotiate (RFC 5764 4.1.2, RFC 7714 14.2), in order of
/// preference. NULL encryption and 32-bit tags are not among them (RFC 8827 6.5).
package enum SRTPProfile: Sendable, Hashable, CaseIterable {
    case aeadAES128GCM, aeadAES256GCM, aesCM128HMACSHA1_80

    /// Length of the master key, and of each session key for encryption, in bytes.
    package var keyLength: Int {
        switch self {
        case .aeadAES128GCM, .aesCM128HMACSHA1_80: 16
        case .aeadAES256GCM: 32
        }
    }

    /// Length of the master salt, and of each session salt, in bytes.
    package var saltLength: Int {
        switch self {
        case .aeadAES128GCM, .aeadAES256GCM: 12
        case .aesCM128HMACSHA1_80: 14
        }
    }

    /// Length of the session key for authentication in bytes; 0 where encryption authenticates.
    package var authenticationKeyLength: Int {
        switch self {
        case .aeadAES128GCM, .aeadAES256GCM: 0
        case .aesCM128HMACSHA1_80: 20
        }
    }

    /// Length of the authentication tag in bytes.
    package var tagLength: Int {
        switch self {
        case .aeadAES128GCM, .aeadAES256GCM: 16
        case .aesCM128HMACSHA1_80: 10
        }
    }

    /// How many bytes ``SRTPContext/protect(_:)`` appends to a packet.
    package var overhead: Int { tagLength }
    /// How many bytes ``SRTPContext/protectRTCP(_:)`` appends to a packet.
    package var rtcpOverhead: Int { tagLength + 4 }

    /// OpenSSL's name of the profile in the `use_srtp` extension.
    var openSSLName: String {
        switch self {
        case .aeadAES128GCM: "SRTP_AEAD_AES_128_GCM"
        case .aeadAES256GCM: "SRTP_AEAD_AES_256_GCM"
        case .aesCM128HMACSHA1_80: "SRTP_AES128_CM_SHA1_80"
        }
    }

    /// The profile's number in the `use_srtp` extension.
    package var number: UInt16 {
        switch self {
        case .aesCM128HMACSHA1_80: 0x0001
        case .aeadAES128GCM: 0x0007
        case .aeadAES256GCM: 0x0008
        }
    }
}

/// What a DTLS handshake yields for SRTP (RFC 5764 4.2): one master key and salt for each direction.
package struct SRTPKeyingMaterial: Sendable, Equatable {
    package var profile: SRTPProfile
    /// For what we send.
    package var localKey: [UInt8]
    package var localSalt: [UInt8]
    /// For what the peer sends.
    package var remoteKey: [UInt8]
    package var remoteSalt: [UInt8]

    package init(
        profile: SRTPProfile, localKey: [UInt8], localSalt: [UInt8], remoteKey: [UInt8], remoteSalt: [UInt8]
    ) {
        self.profile = profile
        self.localKey = localKey
        self.localSalt = localSalt
        self.remoteKey = remoteKey
        self.remoteSalt = remoteSalt
    }

    /// The context that protects what we send.
    package func makeSendContext() throws(SRTPError) -> SRTPContext {
        try SRTPContext(profile: profile, masterKey: localKey, masterSalt: localSalt)
    }

    /// The context that opens what the peer sends.
    package func makeReceiveContext() throws(SRTPError) -> SRTPContext {
        try SRTPContext(profile: profile, masterKey: remoteKey, masterSalt: remoteSalt)
    }
}
