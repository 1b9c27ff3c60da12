import Testing

/// The same file as in `APIExamplesTests`, compiled in Swift 5 language mode.
@Suite struct APIExamplesSwift5Tests {
    @Test func constantsHoldInSwift5Mode() throws {
        if DeterministicRun.isActive {
            #expect(soraConstantCheckFailures() == [])
        } else {
            let (status, output) = try DeterministicRun.repeatTests(of: "APIExamplesSwift5Tests")
            #expect(status == 0, "\(output)")
            #expect(output.contains("constantsHoldInSwift5Mode() passed"), "\(output)")
        }
    }
}
