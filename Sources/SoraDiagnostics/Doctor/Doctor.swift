import SoraNetwork

/// Walks through each stage of a connection to Sora, and says where and why it fails.
///
/// Every stage is bounded by ``DoctorConfiguration/timeout``. Reports hold no credentials. A cancelled task leaves the
/// server in order and reports nothing more.
package struct Doctor: Sendable {
    package var configuration: DoctorConfiguration

    package init(_ configuration: DoctorConfiguration) { self.configuration = configuration }

    /// Examines each URL in turn.
    /// - Parameters:
    ///   - onReport: gets each stage as soon as it is known, on a thread of the doctor's.
    ///   - onDiagnosis: gets the verdict on each URL.
    /// - Throws: ``NetworkError`` if the machine gives no thread or descriptor.
    @discardableResult
    package func examine(
        onReport: @escaping @Sendable (StageReport) -> Void = { _ in }, onDiagnosis: (Diagnosis) -> Void = { _ in }
    ) async throws -> [Diagnosis] {
        var diagnoses: [Diagnosis] = []
        for url in configuration.urls where !Task.isCancelled {
            let loop = try EventLoop(name: "sora-doctor")
            let examination = Examination(of: url, configuration: configuration, loop: loop, onReport: onReport)
            let diagnosis = await withTaskCancellationHandler {
                await examination.run()
            } onCancel: {
                loop.execute { examination.assumeIsolated { $0.interrupt() } }
            }
            await Doctor.stop(loop)
            diagnoses.append(diagnosis)
            onDiagnosis(diagnosis)
        }
        return diagnoses
    }

    /// Not from the loop itself, which could not wait for its own end.
    private static func stop(_ loop: EventLoop) async { loop.stop() }
}
