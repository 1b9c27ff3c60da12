import LocalSora
import SoraHTTP
import TestSupport
import Testing

@Suite("Web page", .serialized, .leavesNoObjects) struct PageTests {
    private static let scripts = ["/page.js", "/sora.js", "/elements.js", "/media.js", "/statistics.js"]
    private static let paths = ["/", "/page.css", "/icon.svg"] + scripts

    private func fetch(_ path: String, headers: HTTPHeaders = [:], method: String = "GET") async throws -> HTTPResponse
    {
        try await withServer { server in
            try await withClient { client in
                try await client.dial(port: server.port)
                return try #require(await client.request(method, path, headers: headers))
            }
        }
    }

    private func text(_ path: String) async throws -> String {
        String(decoding: try await fetch(path).body, as: UTF8.self)
    }

    /// The quoted strings behind each occurrence of `opening`, up to `end`.
    private func quoted(_ opening: String, _ end: Character, in text: String) -> [String] {
        text.split(separator: opening).dropFirst().map { String($0.prefix { $0 != end }) }
    }

    @Test func servesItsFilesWithTypesAndProtection() async throws {
        for path in Self.paths {
            let type =
                switch path {
                case "/": "text/html; charset=utf-8"
                case "/page.css": "text/css; charset=utf-8"
                case "/icon.svg": "image/svg+xml"
                default: "text/javascript; charset=utf-8"
                }
            let response = try await fetch(path)
            #expect(response.head.status == 200)
            #expect(response.head.headers["content-type"] == type)
            #expect(response.head.headers["x-content-type-options"] == "nosniff")
            #expect(response.head.headers["content-security-policy"]?.contains("default-src 'none'") == true)
            #expect(response.body.count > 100, "\(path)")
        }
        #expect(try await fetch("/../Package.swift").head.status == 404)
    }

    @Test func unchangedFilesAreNotSentAgain() async throws {
        let tag = try #require(try await fetch("/page.js").head.headers["etag"])
        let again = try await fetch("/page.js", headers: ["If-None-Match": tag])
        #expect(again.head.status == 304)
        #expect(again.body.isEmpty)
        #expect(try await fetch("/page.js", method: "HEAD").body.isEmpty)
    }

    @Test func usesOnlyWhatTheServerServes() async throws {
        let html = try await text("/")
        for reference in quoted("src=\"", "\"", in: html) + quoted("<link rel=\"stylesheet\" href=\"", "\"", in: html) {
            #expect(Self.paths.contains(reference), "\(reference)")
        }
        for script in Self.scripts {
            for reference in quoted("from \"", "\"", in: try await text(script)) {
                #expect(Self.paths.contains(reference), "\(reference)")
            }
        }
        for path in Self.paths where path != "/icon.svg" {
            let content = try await text(path)
            #expect(!content.contains("http://") && !content.contains("https://"), "\(path)")
        }
    }

    @Test func scriptKnowsOnlyElementsThatExist() async throws {
        let html = try await text("/")
        let ids = Set(quoted(" id=\"", "\"", in: html))
        var script = ""
        for path in Self.scripts { script += try await text(path) }
        for id in quoted("$(\"", "\"", in: script) { #expect(ids.contains(id), "\(id)") }
        let names = Set(quoted(" name=\"", "\"", in: html))
        for name in quoted("value(\"", "\"", in: script) { #expect(names.contains(name), "\(name)") }
        // What the policy of the page forbids.
        #expect(!html.contains("style=\"") && !html.contains("onclick"))
    }

    @Test func everyFieldHasALabel() async throws {
        let html = try await text("/")
        let labelled = Set(quoted("<label for=\"", "\"", in: html))
        for field in html.split(separator: "<").filter({
            $0.hasPrefix("input ") || $0.hasPrefix("select ") || $0.hasPrefix("textarea ")
        }) {
            let id = quoted(" id=\"", "\"", in: String(field)).first
            let isInsideLabel = field.contains("type=\"radio\"") || field.contains("type=\"checkbox\"")
            #expect(isInsideLabel || field.contains("aria-label") || labelled.contains(id ?? ""), "\(field)")
        }
    }

    @Test func canBeSwitchedOff() async throws {
        try await withServer {
            $0.servesPage = false
        } _: { server in
            try await withClient { client in
                try await client.dial(port: server.port)
                #expect(await client.request("GET", "/page.js")?.head.status == 404)
                #expect(await client.request("GET", "/")?.head.headers["content-type"]?.hasPrefix("text/plain") == true)
            }
        }
    }
}
