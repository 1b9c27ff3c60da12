extension Page {
    static let icon = ##"""
        A local Sora server.
        """##
}
