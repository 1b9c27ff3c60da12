import Testing

/// The companion of the API specification compiles unchanged in this target; here its promises are checked.
@Suite struct APIExamplesTests {
    @Test func constantsHoldInSwift6Mode() throws {
        if DeterministicRun.isActive {
            #expect(soraConstantCheckFailures() == [])
        } else {
            let (status, output) = try DeterministicRun.repeatTests(of: "APIExamplesTests")
            #expect(status == 0, "\(output)")
            #expect(output.contains("constantsHoldInSwift6Mode() passed"), "\(output)")
        }
    }
}
