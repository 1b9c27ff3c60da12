import SoraMessages
import SoraWire
import Testing

@Suite struct RPCTests {
    private func response(_ text: String) -> RPCResponse? { RPCResponse(parsing: Array(text.utf8)) }

    // LIF26
    @Test func onlyValidResponsesCount() {
        #expect(response(#"{"jsonrpc":"2.0","id":1,"result":null}"#) == RPCResponse(id: .number(1), result: .null))
        #expect(response(#"{"jsonrpc":"2.0","id":1.0,"result":{}}"#)?.id == .number(1))
        let error = RPCErrorObject(code: -32_601, message: "no", data: [:])
        #expect(
            response(#"{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"no","data":{}}}"#)
                == RPCResponse(id: .number(7), error: error))
        for bad in [
            #"{"jsonrpc":2.0,"id":1,"result":1}"#, #"{"jsonrpc":"1.0","id":1,"result":1}"#, #"{"id":1,"result":1}"#,
            #"{"jsonrpc":"2.0","id":"1","result":1}"#, #"{"jsonrpc":"2.0","id":1.5,"result":1}"#,
            #"{"jsonrpc":"2.0","result":1}"#, #"{"jsonrpc":"2.0","id":null,"result":1}"#,
            #"{"jsonrpc":"2.0","id":1}"#, #"{"jsonrpc":"2.0","id":1,"error":"no"}"#,
            #"{"jsonrpc":"2.0","id":1,"error":{"message":"no"}}"#, #"{"jsonrpc":"2.0","id":1,"error":{"code":1}}"#,
            #"{"jsonrpc":"2.0","id":1,"error":{"code":"1","message":"no"}}"#,
            #"{"jsonrpc":"2.0","id":1,"error":{"code":1.5,"message":"no"}}"#,
            #"{"jsonrpc":"2.0","id":1,"error":null}"#,
            #"{"jsonrpc":"2.0","id":1,"result":1,"error":{"code":1,"message":"no"}}"#,
            #"{"jsonrpc":"2.0","id":1,"result":1} x"#, #"[{"jsonrpc":"2.0","id":1,"result":1}]"#, "", "null",
            #"{"jsonrpc":"2.0","id":1,"method":"x","result":1}"#,
        ] { #expect(response(bad) == nil, "\(bad)") }
    }

    @Test func requestsAreJudgedLikeTheStandardSays() {
        func receive(_ text: String) -> RPCRequest.Received { RPCRequest.receive(Array(text.utf8)) }
        #expect(
            receive(#"{"jsonrpc":"2.0","method":"m","id":"a","params":[1]}"#)
                == .request(RPCRequest(id: .text("a"), method: "m", params: [1])))
        #expect(receive(#"{"jsonrpc":"2.0","method":"m"}"#) == .request(RPCRequest(id: nil, method: "m", params: nil)))
        func code(_ text: String) -> (RPCID?, Int)? {
            guard case .rejected(let response) = receive(text), case .failure(let error) = response.outcome
            else { return nil }
            return (response.id, error.code)
        }
        #expect(code("{")?.1 == RPCErrorObject.parseError)
        #expect(code("[]")?.1 == RPCErrorObject.invalidRequest)
        #expect(code(#"{"jsonrpc":"2.0","id":3}"#)?.0 == .number(3))
        #expect(code(#"{"jsonrpc":"2.0","id":{},"method":"m"}"#)?.1 == RPCErrorObject.invalidRequest)
        #expect(RPCResponse(id: nil, result: 1).json.text == #"{"jsonrpc":"2.0","id":null,"result":1}"#)
    }

    @Test func recordedCallIsRead() throws {
        let text = #"{"jsonrpc":"2.0","id":1,"method":"2025.2.0/RequestSimulcastRid","params":{"rid":"r1"}}"#
        guard case .request(let request) = RPCRequest.receive(Array(text.utf8)) else {
            Issue.record("rejected")
            return
        }
        let call = try RPCCall(request, callerConnectionID: "ME")
        #expect(call == .requestSimulcastRID(rid: .r1, senderConnectionID: nil))
        #expect(
            try .object(RPCRequest(id: .number(1), method: call.method, params: call.params).json)
                == JSONValue(parsing: text))
    }

    @Test func everyMethodSurvivesWriteAndRead() throws {
        let calls: [RPCCall] = [
            .requestSimulcastRID(rid: .none, senderConnectionID: "S"),
            .requestSpotlightRID(sendConnectionID: nil, focus: .r2, unfocus: .none),
            .resetSpotlightRID(sendConnectionID: "S"), .resetSpotlightRID(sendConnectionID: nil),
            .putSignalingNotifyMetadata(metadata: .null, push: true),
            .putSignalingNotifyMetadataItem(key: "k", value: [nil], push: nil),
            .custom(method: "2099.1/New", params: 5), .custom(method: "x", params: nil),
        ]
        for call in calls {
            let request = RPCRequest(id: .number(1), method: call.method, params: call.params)
            guard case .request(let read) = RPCRequest.receive(Array(request.json.text.utf8)) else {
                Issue.record("rejected")
                continue
            }
            #expect(try RPCCall(read, callerConnectionID: "ME") == call)
        }
    }

    @Test func wrongParametersAreInvalid() {
        func code(_ method: String, _ params: JSONValue?) -> Int? {
            do throws(RPCErrorObject) {
                _ = try RPCCall(RPCRequest(id: .number(1), method: method, params: params), callerConnectionID: "ME")
                return nil
            } catch { return error.code }
        }
        let rid = RPCMethodName.requestSimulcastRID
        #expect(code(rid, nil) == RPCErrorObject.invalidParams)
        #expect(code(rid, ["rid": "r7"]) == RPCErrorObject.invalidParams)
        #expect(code(rid, ["rid": "r1", "channel_id": "c"]) == RPCErrorObject.invalidParams)
        #expect(code(rid, ["rid": "r1", "sender_connection_id": 5]) == RPCErrorObject.invalidParams)
        #expect(code(rid, ["rid": "r1", "receiver_connection_id": "YOU"]) == RPCErrorObject.invalidParams)
        #expect(code(rid, ["rid": "r1", "receiver_connection_id": "ME", "sender_connection_id": nil]) == nil)
        #expect(code(RPCMethodName.putSignalingNotifyMetadata, [:]) == RPCErrorObject.invalidParams)
        #expect(code(RPCMethodName.resetSpotlightRID, nil) == nil)
        #expect(code(RPCMethodName.resetSpotlightRID, [1]) == RPCErrorObject.invalidParams)
    }

    @Test func resultsSurviveWriteAndRead() throws {
        let simulcast = RequestSimulcastRIDResult(channelID: "c", receiverConnectionID: "R", rid: .r0)
        #expect(RequestSimulcastRIDResult(json: simulcast.json) == simulcast)
        #expect(simulcast.json == ["channel_id": "c", "receiver_connection_id": "R", "rid": "r0"])
        let spotlight = SpotlightRIDResult(channelID: "c", recvConnectionID: "R", focus: .r1, unfocus: LayerRID.none)
        #expect(SpotlightRIDResult(json: spotlight.json) == spotlight)
        #expect(SpotlightRIDResult(json: ["channel_id": "c"]) == nil)
        let connection = ConnectionObject(
            channelID: "c", sessionID: nil, clientID: "k", bundleID: "b", connectionID: "C", role: .sendonly,
            audio: true,
            video: ["codec_type": "VP9"], simulcast: true, spotlight: false, createdTime: 1_700_000_000)
        #expect(ConnectionObject(json: connection.json) == connection)
    }
}
