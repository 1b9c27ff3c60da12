import SoraWire

extension ChannelSettings {
    /// Seconds since 1970 at a time of the loop's clock.
    func wallClock(_ now: Instant) -> Double { wallClockOrigin + Double(now.nanoseconds) / 1e9 }

    /// RFC 3339 in UTC with microseconds.
    func timestamp(_ now: Instant) -> String { timestamp(wallClock: wallClock(now)) }

    /// - Parameter seconds: since 1970.
    func timestamp(wallClock seconds: Double) -> String {
        var whole = Int64(seconds.rounded(.down))
        let micros = min(Int((seconds - Double(whole)) * 1e6), 999_999)
        let secondOfDay = Int(((whole % 86_400) + 86_400) % 86_400)
        whole = (whole - Int64(secondOfDay)) / 86_400
        // Days since 1970 to a civil date: years begin in March, so that leap days come last.
        let shifted = whole + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthFromMarch = (5 * dayOfYear + 2) / 153
        let day = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
        let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
        let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        func pad(_ value: Int, _ width: Int) -> String {
            let text = String(value)
            return String(repeating: "0", count: max(0, width - text.count)) + text
        }
        let date = "\(pad(Int(year), 4))-\(pad(Int(month), 2))-\(pad(Int(day), 2))"
        let time = "\(pad(secondOfDay / 3600, 2)):\(pad(secondOfDay / 60 % 60, 2)):\(pad(secondOfDay % 60, 2))"
        return "\(date)T\(time).\(pad(micros, 6))Z"
    }
}
