extension Page {
    static let html = ##"""
        A local Sora server.
        """##
}
