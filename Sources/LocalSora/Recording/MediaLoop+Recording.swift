import SoraMessages
import SoraNetwork
import SoraWire

// Recordings: files, and what event webhooks are told of them (spec/signaling.md 9.4).

extension MediaLoop {
    func note(_ event: RecordingEvent, in channel: Channel) {
        let body = recordingBody(event)
        switch event.kind {
        case .started: tell("recording.started", channelID: channel.id, body)
        case .report: tell("recording.report", channelID: channel.id, body)
        case .archiveStarted: tell("archive.started", channelID: channel.id, body)
        case .archiveEnded:
            guard let archive = event.archive else { return }
            let (channelID, isPiece, isLast) = (channel.id, archive.piece != nil, archive.isLast)
            recordings?.close(archive.path) { failure in
                // The loop lives as long as the file is open.
                self.loop.execute {
                    self.assumeIsolated {
                        $0.archiveClosed(channelID: channelID, body, failure, isPiece: isPiece, isLast: isLast)
                    }
                }
            }
        }
    }

    private func archiveClosed(
        channelID: String, _ body: JSONObject, _ failure: String?, isPiece: Bool, isLast: Bool
    ) {
        if let failure {
            var body = body
            var data = body["data"]?.objectValue ?? JSONObject()
            data["reason"] = .string(failure)
            body["data"] = .object(data)
            tell("archive.failed", channelID: channelID, body)
        } else {
            tell(isPiece ? "split-archive.available" : "archive.available", channelID: channelID, body)
        }
        if isPiece, isLast { tell("split-archive.end", channelID: channelID, body) }
    }

    private func recordingBody(_ event: RecordingEvent) -> JSONObject {
        var data: JSONObject = [
            "recording_id": .string(event.recordingID),
            "created_time": .integer(Int64(event.startedTime)),
            "created_timestamp": .string(settings.timestamp(wallClock: event.startedTime)),
        ]
        data.set("recording_metadata", event.metadata)
        if case .report(let files) = event.kind { data["total_archives"] = files.json }
        var body: JSONObject = [
            "multistream": true, "spotlight": .bool(event.session.isSpotlight),
            "session_id": .string(event.session.sessionID), "recording_id": .string(event.recordingID),
        ]
        if let archive = event.archive {
            let grant = archive.connection.grant
            body["simulcast"] = .bool(grant.simulcast)
            body["role"] = grant.role.json
            body["client_id"] = .string(grant.clientID)
            body["bundle_id"] = .string(grant.bundleID)
            body["connection_id"] = .string(archive.connection.connectionID)
            body.set("event_metadata", watches[ConnectionID(archive.connection.connectionID)]?.eventMetadata)
            data["archive_id"] = .string(archive.id)
            data["filename"] = .string(archive.path)
            data["start_timestamp"] = .string(settings.timestamp(wallClock: archive.startedTime))
            data.set("split_index", archive.piece)
            if event.kind == .archiveEnded {
                data["stop_timestamp"] = .string(settings.timestamp(wallClock: archive.endedTime))
                data["size"] = archive.bytes.json
                data["duration_ms"] = .integer(archive.milliseconds)
                data["video_frames"] = archive.videoFrames.json
                data["audio_frames"] = archive.audioFrames.json
            }
        }
        body["data"] = .object(data)
        return body
    }

    /// The session webhook may ask for a recording (spec/signaling.md 9.4).
    func startRecording(asked answer: JSONObject, in channel: Channel) {
        guard answer["recording"]?.boolValue == true, let request = RecordingRequest(sessionAnswer: answer) else {
            return
        }
        // Where recording is off, or one is under way, nothing happens: the session goes on without.
        _ = try? channel.startRecording(request, now: loop.now)
    }
}
