extension Page {
    static let script = ##"""
        A local Sora server.
        """##
}
