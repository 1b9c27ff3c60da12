import SoraDiagnostics
import Testing

@testable import SoraCLI

@Suite struct DoctorCommandTests {
    private func status(_ stage: DoctorStage, _ failure: StageReport.Failure = .other) -> SoraCLI.ExitStatus {
        DoctorCommand.status(of: stage, failure)
    }

    /// CLI4
    @Test func eachStageHasItsExitStatus() {
        let expected: [DoctorStage: SoraCLI.ExitStatus] = [
            .url: .usage, .dns: .hostNotFound, .tcp: .unavailable, .proxy: .unavailable, .tls: .tls,
            .upgrade: .protocolError, .connect: .protocolError, .offer: .sessionDescription, .turn: .ice, .ice: .ice,
            .dtls: .dtls, .srtp: .dtls, .dataChannels: .media, .rtp: .media, .keyFrame: .media,
        ]
        for stage in DoctorStage.allCases { #expect(status(stage) == expected[stage], "\(stage)") }
        #expect(status(.connect, .refused) == .refused)
        #expect(status(.connect, .timedOut) == .timeout)
        #expect(status(.proxy, .refused) == .refused)
    }

    @Test func refusesWrongWordsBeforeItConnects() async {
        for words in [
            [], ["ws://127.0.0.1:1/", "--metadata", #"{"a":}"#], ["ws://127.0.0.1:1/", "--proxy", "nowhere"],
            ["ws://127.0.0.1:1/", "--timeout", "0"], ["ws://127.0.0.1:1/", "--video-codec", "vp10"],
            ["ws://127.0.0.1:1/", "--role", "watcher"],
        ] {
            await #expect(throws: CommandFailure.self, "\(words)") {
                guard
                    case .run(_, _, let arguments) = try ArgumentParser(root: Tool.root).parse(["doctor"] + words)
                else { return }
                _ = try await DoctorCommand.run(arguments)
            }
        }
    }
}
