import SoraCrypto
import SoraHTTP

/// One file of the web page.
struct PageAsset: Sendable {
    let type: String
    let body: [UInt8]
    private let tag: String

    init(_ type: String, _ text: String) {
        self.type = type
        body = Array(text.utf8)
        tag = "\"" + Hexadecimal.encode(Array(hash(.sha256, body).prefix(8))) + "\""
    }

    func response(to head: HTTPRequestHead) -> HTTPResponse {
        let headers: HTTPHeaders = [
            "ETag": tag, "Cache-Control": "no-cache", "X-Content-Type-Options": "nosniff",
            // The page needs nothing from anywhere but this server, except signaling, which may be elsewhere.
            "Content-Security-Policy":
                "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src blob:; "
                + "connect-src 'self' ws: wss:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
            "Permissions-Policy": "camera=(self), microphone=(self), display-capture=(self)",
        ]
        if head.headers["If-None-Match"] == tag { return HTTPResponse(status: 304, headers: headers) }
        return HTTPResponse(status: 200, type: type, headers: headers, body: body)
    }
}

/// The files of the web page, by path.
enum PageAssets {
    static func find(_ path: String) -> PageAsset? { all[path] }

    static let all: [String: PageAsset] = [
        "/": PageAsset("text/html; charset=utf-8", Page.html),
        "/page.css": PageAsset("text/css; charset=utf-8", Page.css),
        "/page.js": PageAsset("text/javascript; charset=utf-8", Page.script),
        "/elements.js": PageAsset("text/javascript; charset=utf-8", Page.elements),
        "/media.js": PageAsset("text/javascript; charset=utf-8", Page.media),
        "/statistics.js": PageAsset("text/javascript; charset=utf-8", Page.statistics),
        "/sora.js": PageAsset("text/javascript; charset=utf-8", Page.client),
        "/icon.svg": PageAsset("image/svg+xml", Page.icon),
    ]
}

/// The texts of the page; each file of this folder adds one.
enum Page {}
