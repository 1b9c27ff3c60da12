import Testing

@testable import Sora

@Suite struct WebSocketStatusCodeTests {
    @Test(arguments: [1000, 1001, 1002, 1003, 1005, 1006, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1015, 4490, 0, -1])
    func keepsEveryNumber(_ number: Int) {
        #expect(WebSocketStatusCode(rawValue: number).intValue() == number)
    }

    @Test func unknownNumbersAreOther() {
        guard case .other(1004) = WebSocketStatusCode(rawValue: 1004) else {
            Issue.record("1004 has no name")
            return
        }
    }
}
