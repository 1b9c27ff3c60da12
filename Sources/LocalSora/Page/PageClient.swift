extension Page {
    static let client = ##"""
        A local Sora server.
        """##
}
