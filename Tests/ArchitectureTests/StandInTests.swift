import Foundation
import Testing

/// The stand-ins for Apple's and WebRTC's types live in Sources/Sora/StandIns and appear in signatures only: what works
/// inside uses types of its own.
@Suite struct StandInTests {
    /// Folders of `Sora` that are inside, and the files that hold the protocols between them and the rest.
    static let inner = [
        "Backends/", "Driver/", "Connection/ConnectionDriver.swift", "Connection/ObservedPeer.swift",
        "Devices/AudioPolicy.swift", "Devices/AudioRoute.swift", "Devices/CameraBackend.swift",
        "Devices/ConnectionMicrophone.swift", "Devices/FramePacer.swift", "Devices/ScreenCaptureOwner.swift",
        "Devices/TrackSpeaker.swift", "Media/TrackPorts.swift", "Views/VideoSurface.swift",
    ]

    /// The public names that a file declares at its top level.
    static func declaredNames(in text: String) -> Set<String> {
        let declaration =
            #/(?m)^(?:@\w+\s+)*(?:public|open)\s+(?:final\s+)?(?:class|struct|enum|protocol|typealias|func|let|var)\s+(\w+)/#
        return Set(text.matches(of: declaration).map { String($0.output.1) })
    }

    /// The stand-ins themselves.
    static func standIns() throws -> Set<String> {
        let folder = ArchitectureTests.root.appending(path: "Sources/Sora/StandIns")
        return try ArchitectureTests.swiftFiles(of: "Sora")
            .filter { $0.deletingLastPathComponent().path == folder.path }
            .reduce(into: []) { $0.formUnion(declaredNames(in: try String(contentsOf: $1, encoding: .utf8))) }
    }

    /// Which of `names` the code of `text` says.
    static func names(_ names: Set<String>, saidIn text: String) -> Set<String> {
        // Most files do not even mention one.
        guard !names.isDisjoint(with: SourceCode.words(of: text.utf8)) else { return [] }
        return names.intersection(SourceCode.words(of: SourceCode(text).bytes))
    }

    @Test func theInsideNamesNoStandIn() throws {
        let standIns = try Self.standIns()
        var seen = Set<String>()
        for module in ArchitectureTests.modules.keys {
            let folder = ArchitectureTests.root.appending(path: "Sources/\(module)").path + "/"
            for file in ArchitectureTests.swiftFiles(of: module) {
                let path = String(file.path.dropFirst(folder.count))
                if module == "Sora" {
                    guard let rule = Self.inner.first(where: { path.hasPrefix($0) }) else { continue }
                    seen.insert(rule)
                }
                let said = Self.names(standIns, saidIn: try String(contentsOf: file, encoding: .utf8))
                #expect(said == [], "\(module)/\(path) names stand-ins; convert at the edge, in Sources/Sora/StandIns")
            }
        }
        #expect(seen == Set(Self.inner), "a folder or file of the inside is not there any more")
    }

    @Test func theRuleKnowsTheStandInsAndFindsThem() throws {
        let standIns = try Self.standIns()
        #expect(standIns.count > 25)
        #expect(standIns.isSuperset(of: ["RTCVideoFrame", "AVCaptureDevice", "CMTime", "CMTimeMake", "UIView"]))
        func said(_ text: String) -> Set<String> { Self.names(standIns, saidIn: text) }
        #expect(said("let port: (RTCVideoFrame) -> Void") == ["RTCVideoFrame"])
        #expect(said("x.map(AVCaptureDevice.init) // CMTime") == ["AVCaptureDevice"])
        #expect(said(#"open("wss://example.com", CMTime.zero)"#) == ["CMTime"])
        #expect(said("/// A ``RTCVideoFrame``.\nlet frame: SoraFrames.VideoFrame") == [])
        #expect(said("let frame: MyRTCVideoFrame /* RTCVideoFrame\n UIView */") == [])
        #expect(said("/* /* CMTime */ UIView */ let time: CMTime") == ["CMTime"])
        #expect(
            said("let page = \"\"\"\n new \"RTCPeerConnection\"\n \"\"\"; x(#\"UIView\" \\\"#, CMTime.self)") == [
                "CMTime"
            ])
        #expect(said(#"log("UIView \(name("CMTime", AVCaptureDevice.self)) RTCVideoFrame")"#) == ["AVCaptureDevice"])
        // A file of the edge says many.
        let edge = ArchitectureTests.root.appending(path: "Sources/Sora/Media/VideoFrame.swift")
        #expect(said(try String(contentsOf: edge, encoding: .utf8)).contains("RTCVideoFrame"))
        #expect(
            Self.declaredNames(in: "@MainActor open class A {\n    public struct B {}\n}\nstruct C {}\npublic func d()")
                == ["A", "d"])
    }
}
