extension Page {
    /// The page's icon.
    // swift-format-ignore
    static let icon = ##"""
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">
<defs><linearGradient id="g" x1="0" y1="0" x2="1" y2="1">
<stop offset="0" stop-color="#38bdf8"/><stop offset="1" stop-color="#6366f1"/></linearGradient></defs>
<rect width="32" height="32" rx="8" fill="url(#g)"/>
<path d="M7 20a5 5 0 0 1 4.3-5A6.2 6.2 0 0 1 23 13.6 5.2 5.2 0 0 1 24 24H11a4 4 0 0 1-4-4z" fill="#fff"/>
</svg>
"""##
}
