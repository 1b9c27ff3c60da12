import LocalSora
import SoraNetwork
import SoraWire
import Testing

@testable import SoraDiagnostics

/// Runs the doctor against one URL.
func examine(
    _ url: String, timeout: Duration = .seconds(2), _ change: (inout DoctorConfiguration) -> Void = { _ in }
) async throws -> Diagnosis {
    var configuration = DoctorConfiguration(urls: [url], channelID: "doctor-test")
    configuration.timeout = timeout
    change(&configuration)
    let diagnoses = try await Doctor(configuration).examine()
    return try #require(diagnoses.first)
}

extension Diagnosis {
    func report(_ stage: DoctorStage) -> StageReport? { stages.last { $0.stage == stage } }

    /// All that the reports say.
    var allText: String {
        stages.map { ([$0.url, $0.summary, $0.advice] + $0.details + [$0.jsonText]).joined(separator: "\n") }
            .joined(separator: "\n") + jsonText
    }
}

/// Checks that the diagnosis names this stage and helps.
func expect(
    _ diagnosis: Diagnosis, failsAt stage: DoctorStage, summary: String, advice: String,
    failure: StageReport.Failure? = nil, sourceLocation: SourceLocation = #_sourceLocation
) {
    let found = diagnosis.failure
    #expect(found?.stage == stage, "\(diagnosis.allText)", sourceLocation: sourceLocation)
    #expect(found?.summary.contains(summary) == true, "\(diagnosis.allText)", sourceLocation: sourceLocation)
    #expect(found?.advice.contains(advice) == true, "\(diagnosis.allText)", sourceLocation: sourceLocation)
    if let failure { #expect(found?.failure == failure, sourceLocation: sourceLocation) }
    // Nothing is examined behind the failed stage.
    #expect(diagnosis.stages.last?.stage == stage, sourceLocation: sourceLocation)
    #expect(diagnosis.stages.filter { $0.verdict == .failed }.count == 1, sourceLocation: sourceLocation)
}
