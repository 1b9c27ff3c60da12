import SoraMessages
import SoraRTP
import SoraWire

// Recording: coded media as it comes, one file for each connection that sends.

extension Channel {
    // MARK: Start and end

    /// - Returns: the recording's id.
    package func startRecording(
        _ request: RecordingRequest, sessionID: String? = nil, now: Instant
    ) throws(OperationError) -> String {
        guard settings.records else { throw .recordingIsOff }
        if let sessionID, sessionID != self.sessionID { throw .unknownSession(sessionID) }
        guard recording == nil else { throw .alreadyRecording }
        let id = SignalingID.generate(using: &random)
        recording = Recording(
            id: id, request: request, startedAt: now, expiresAt: request.expireTime.map { now + $0 },
            nextSplit: request.splitDuration.map { now + $0 })
        emit(.recording(recordingEvent(.started, now: now)))
        notifyRecording(NotifyMessage.Event.recordingStarted, id: id, now: now)
        for member in order.compactMap({ members[$0] }) where member.isAnnounced { beginArchive(of: member, now: now) }
        return id
    }

    /// - Returns: the id of the recording that ended.
    @discardableResult
    package func stopRecording(sessionID: String? = nil, now: Instant) throws(OperationError) -> String {
        if let sessionID, sessionID != self.sessionID { throw .unknownSession(sessionID) }
        guard let id = recording?.id else { throw .notRecording }
        endRecording(now: now)
        return id
    }

    /// Ends it if there is one.
    func endRecording(now: Instant) {
        guard let present = recording else { return }
        for id in present.archives.keys.sorted(by: { $0.rawValue < $1.rawValue }) {
            endArchive(of: id, isLast: true, now: now)
        }
        emit(.recording(recordingEvent(.report(files: recording?.files ?? 0), now: now)))
        recording = nil
        notifyRecording(NotifyMessage.Event.recordingStopped, id: present.id, now: now)
    }

    /// The names of these notifications are our choice (spec/signaling.md 11, not established).
    private func notifyRecording(_ event: String, id: String, now: Instant) {
        var message = NotifyMessage(eventType: event)
        message.timestamp = timestamp(now)
        message.sessionID = sessionID
        message.extra["recording_id"] = .string(id)
        notify(message, now: now) { _ in true }
    }

    private func recordingEvent(
        _ kind: RecordingEvent.Kind, archive: ArchiveRecord? = nil, now: Instant
    ) -> RecordingEvent {
        RecordingEvent(
            kind: kind, recordingID: recording?.id ?? "", session: sessionRecord(now: now),
            metadata: recording?.request.metadata,
            startedTime: settings.wallClock(recording?.startedAt ?? now), archive: archive)
    }

    // MARK: Archives

    /// A sender's media goes into a file from now on, if a recording is under way.
    func beginArchive(of member: Member, now: Instant) {
        guard let present = recording, present.archives[member.id] == nil, member.role.sends else { return }
        let tracks = [member.audioTrack, member.videoTrack].compactMap { $0 }.map { track in
            ArchiveTrack(track, random: &random)
        }
        guard !tracks.isEmpty else { return }
        let piece = present.nextSplit == nil ? nil : present.piece
        let suffix = piece.map { "_\($0)" } ?? ""
        let archive = Archive(
            id: member.id.rawValue + suffix, path: "\(present.id)/\(member.id.rawValue)\(suffix).webm", piece: piece,
            tracks: tracks, now: now)
        recording?.archives[member.id] = archive
        for archived in tracks {
            archived.track.archive = archived
            follow(archived, now: now)
        }
        emit(
            .recording(
                recordingEvent(
                    .archiveStarted, archive: record(of: archive, member, isLast: false, now: now), now: now)))
    }

    func endArchive(of id: ConnectionID, isLast: Bool, now: Instant) {
        guard let archive = recording?.archives.removeValue(forKey: id), let member = members[id] else { return }
        for archived in archive.tracks { archived.track.archive = nil }
        for output in archive.finish() { emit(.file(output)) }
        if !archive.isEmpty { recording?.files += 1 }
        emit(
            .recording(
                recordingEvent(
                    .archiveEnded, archive: record(of: archive, member, isLast: isLast, now: now), now: now)))
    }

    private func record(of archive: Archive, _ member: Member, isLast: Bool, now: Instant) -> ArchiveRecord {
        ArchiveRecord(
            id: archive.id, path: archive.path, connection: record(of: member, now: now), piece: archive.piece,
            isLast: isLast, startedTime: settings.wallClock(archive.startedAt), endedTime: settings.wallClock(now),
            bytes: archive.size, milliseconds: archive.milliseconds, videoFrames: archive.videoFrames,
            audioFrames: archive.audioFrames)
    }

    // MARK: Media

    /// A packet of a sender that is being recorded.
    func archive(_ packet: ForwardablePacket, layer: Int, track: SenderTrack, now: Instant) {
        guard let archived = track.archive else { return }
        follow(archived, now: now)
        store(archived.take(packet, layer: layer, now: now), of: archived, now: now)
    }

    private func follow(_ archived: ArchiveTrack, now: Instant) {
        guard archived.followBestLayer(), let layer = archived.layerNeedingKeyFrame else { return }
        requestKeyFrame(of: archived.track, layer: layer, now: now)
    }

    private func store(
        _ result: (frames: [ArchiveTrack.Frame], needsKeyFrame: Bool), of archived: ArchiveTrack, now: Instant
    ) {
        if !result.frames.isEmpty, let archive = recording?.archives[archived.track.sender.id] {
            for output in archive.write(result.frames) { emit(.file(output)) }
        }
        if result.needsKeyFrame, let layer = archived.forwarder.currentLayer {
            requestKeyFrame(of: archived.track, layer: layer, now: now)
        }
    }

    // MARK: Time

    var recordingTimeout: Instant? {
        guard let recording else { return nil }
        return [recording.expiresAt, recording.nextSplit].compactMap { $0 }.min()
    }

    func handleRecordingTimeout(now: Instant) {
        guard let present = recording else { return }
        if let due = present.expiresAt, due <= now { return endRecording(now: now) }
        guard let due = present.nextSplit, due <= now, let length = present.request.splitDuration else { return }
        recording?.nextSplit = now + length
        let archived = present.archives.keys.sorted { $0.rawValue < $1.rawValue }
        for id in archived { endArchive(of: id, isLast: false, now: now) }
        recording?.piece += 1
        for id in archived {
            if let member = members[id] { beginArchive(of: member, now: now) }
        }
    }

    /// Gives up gaps in what is being recorded.
    func handleArchiveTick(now: Instant) {
        guard let recording else { return }
        for archived in recording.archives.values.flatMap(\.tracks) {
            store(archived.handleTimeout(now: now), of: archived, now: now)
        }
    }
}
