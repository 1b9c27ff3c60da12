// swift-tools-version: 6.2
// Sora for Swift: a Sora client SDK, a WebRTC stack and a local Sora-compatible server for Linux.
//
// The table below is the house of docs/ARCHITECTURE.md: a module may import only what stands in its
// `uses` list, and every arrow points downwards.
//
// SORA_ONLY=SoraSCTP,SoraRTP (test targets without their `Tests` suffix) keeps only these modules,
// what they use and their tests, so that `make test-one MODULE=SoraSCTP` builds seconds, not minutes.
import PackageDescription

let media: TargetDependencyCondition? = .when(traits: ["Media"])

// MARK: C libraries

let systemLibraries: [Target] = [
    .systemLibrary(
        name: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
    .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
    .systemLibrary(
        name: "CSRTP", pkgConfig: "libsrtp2", providers: [.apt(["libsrtp2-dev"])]),
    .systemLibrary(name: "CVPX", pkgConfig: "vpx", providers: [.apt(["libvpx-dev"])]),
    .systemLibrary(name: "CAOM", pkgConfig: "aom", providers: [.apt(["libaom-dev"])]),
    .systemLibrary(name: "CDav1d", pkgConfig: "dav1d", providers: [.apt(["libdav1d-dev"])]),
    .systemLibrary(
        name: "COpenH264", pkgConfig: "openh264", providers: [.apt(["libopenh264-dev"])]),
    .systemLibrary(name: "COpus", pkgConfig: "opus", providers: [.apt(["libopus-dev"])]),
    .systemLibrary(name: "CYUV", providers: [.apt(["libyuv-dev"])]),  // Debian's has no pkg-config file
    .systemLibrary(
        name: "CGStreamer",
        pkgConfig: "gstreamer-1.0 gstreamer-app-1.0 gstreamer-video-1.0 gstreamer-audio-1.0",
        providers: [.apt(["libgstreamer1.0-dev", "libgstreamer-plugins-base1.0-dev"])]),
    .systemLibrary(name: "CPulse", pkgConfig: "libpulse", providers: [.apt(["libpulse-dev"])]),
    .systemLibrary(name: "CSDL2", pkgConfig: "sdl2", providers: [.apt(["libsdl2-dev"])]),
]

/// Libraries that only the `Media` trait needs.
let mediaLibraries: Set<String> = [
    "CVPX", "CAOM", "CDav1d", "COpenH264", "COpus", "CYUV", "CGStreamer", "CPulse", "CSDL2",
]

// MARK: Modules

struct Module {
    var name: String
    var uses: [String] = []
    /// Modules and libraries used only when the trait `Media` is on.
    var usesForMedia: [String] = []
    var kind: Kind = .library
    /// Additional dependencies of the tests.
    var testUses: [String] = []
    var hasTests = true
    enum Kind { case library, cLibrary, executable, support }
}

let modules: [Module] = [
    // Floor 0: bytes, time, C.
    Module(name: "CLinux", kind: .cLibrary, hasTests: false),
    Module(name: "CDtlsTestClock", kind: .cLibrary, hasTests: false),
    Module(name: "CLiveObjects", kind: .cLibrary, hasTests: false),
    Module(name: "SoraWire"),
    Module(name: "SoraLocking"),
    Module(name: "SoraCrypto", uses: ["COpenSSL"]),
    Module(name: "SoraFrames", uses: ["SoraLocking", "SoraWire"]),
    Module(name: "SoraWebM", uses: ["SoraWire"], hasTests: false),  // tested by those who write files
    // Floor 1: protocol layers, sans-IO.
    Module(name: "SoraEmulator", uses: ["SoraWire"]),
    Module(name: "SoraSDP", uses: ["SoraWire"]),
    Module(name: "SoraICE", uses: ["SoraWire", "SoraCrypto"], testUses: ["SoraEmulator"]),
    Module(name: "SoraSCTP", uses: ["SoraWire"], testUses: ["SoraEmulator"]),
    Module(name: "SoraRTP", uses: ["SoraWire"], testUses: ["SoraEmulator"]),
    Module(
        name: "SoraSecureTransport", uses: ["SoraWire", "SoraCrypto", "COpenSSL"],
        testUses: ["CSRTP", "CDtlsTestClock"]),
    Module(name: "SoraHTTP", uses: ["SoraWire", "SoraCrypto"]),
    Module(name: "SoraMessages", uses: ["SoraWire", "CZlib"], testUses: ["CDtlsTestClock"]),
    Module(
        name: "SoraNetwork", uses: ["SoraLocking", "SoraWire", "SoraCrypto", "CLinux", "COpenSSL"],
        testUses: ["SoraHTTP"]),
    // Floor 2: whole connections, sans-IO.
    Module(
        name: "SoraPeer",
        uses: ["SoraWire", "SoraSDP", "SoraICE", "SoraSCTP", "SoraRTP", "SoraSecureTransport"],
        testUses: ["SoraEmulator"]),
    Module(
        name: "SoraClient",
        uses: ["SoraWire", "SoraPeer", "SoraMessages", "SoraHTTP", "SoraSDP", "SoraICE", "SoraSCTP", "SoraRTP"],
        testUses: ["SoraEmulator", "SoraSecureTransport", "LocalSora"]),
    Module(
        name: "SoraMedia",
        uses: ["SoraLocking", "SoraWire", "SoraPeer", "SoraFrames", "SoraRTP", "SoraSDP", "SoraWebM"],
        testUses: ["SoraCodecs", "SoraDevices", "SoraICE", "SoraSecureTransport", "SoraEmulator"]),
    Module(
        name: "SoraCodecs", uses: ["SoraWire", "SoraFrames"],
        usesForMedia: ["CVPX", "CAOM", "CDav1d", "COpenH264", "COpus", "CYUV"]),
    Module(
        name: "SoraDevices", uses: ["SoraLocking", "SoraWire", "SoraFrames", "SoraWebM", "CZlib"],
        usesForMedia: ["CGStreamer", "CPulse", "CSDL2", "CYUV"], testUses: ["SoraCodecs"]),
    // Floor 3: products.
    Module(
        name: "LocalSora",
        uses: [
            "SoraLocking", "SoraWire", "SoraPeer", "SoraMessages", "SoraHTTP", "SoraNetwork", "SoraEmulator",
            "SoraSDP", "SoraICE", "SoraSCTP", "SoraRTP", "SoraSecureTransport", "SoraCrypto", "SoraWebM",
        ]),
    Module(
        name: "Sora",
        uses: [
            "SoraLocking", "SoraWire", "SoraClient", "SoraPeer", "SoraMessages", "SoraHTTP", "SoraNetwork", "SoraMedia",
            "SoraFrames", "SoraRTP", "SoraICE", "SoraSDP", "SoraSCTP", "SoraSecureTransport", "SoraCodecs",
            "SoraDevices",
        ],
        testUses: ["LocalSora"]),
    Module(
        name: "SoraDiagnostics",
        uses: [
            "SoraWire", "SoraCrypto", "SoraPeer", "SoraMessages", "SoraHTTP", "SoraNetwork", "SoraSDP", "SoraICE",
            "SoraRTP",
            "SoraSCTP", "SoraSecureTransport", "COpenSSL",
        ],
        usesForMedia: ["CVPX", "CAOM", "CDav1d", "COpenH264", "COpus"], testUses: ["LocalSora"]),
    Module(
        name: "SoraLoad",
        uses: [
            "SoraLocking", "SoraWire", "SoraPeer", "SoraMessages", "SoraHTTP", "SoraNetwork", "SoraSDP", "SoraICE",
            "SoraRTP",
            "SoraSCTP", "SoraSecureTransport",
        ], testUses: ["LocalSora"]),
    // Floor 4: the command.
    Module(
        name: "SoraCLI",
        uses: [
            "SoraLocking", "Sora", "LocalSora", "SoraDiagnostics", "SoraLoad", "SoraDevices", "SoraFrames",
            "SoraMessages", "SoraNetwork",
        ], kind: .executable),
    Module(
        name: "SoraBenchmarks",
        uses: [
            "SoraWire", "SoraPeer", "SoraNetwork", "SoraHTTP", "SoraMessages", "SoraSCTP", "SoraRTP", "SoraICE",
            "SoraSDP", "SoraSecureTransport", "SoraLoad", "SoraLocking", "SoraFrames", "LocalSora", "Sora",
        ], kind: .executable, hasTests: false),
    Module(
        name: "TestSupport",
        uses: ["SoraWire", "SoraLocking", "SoraEmulator", "SoraFrames", "CDtlsTestClock", "CLiveObjects"],
        kind: .support,
        hasTests: false),
]

/// SORA_SANITIZER=thread goes with `--sanitize=thread`: locks become ones that the sanitizer sees; see `Locked`.
let sanitizerSettings: [SwiftSetting] =
    Context.environment["SORA_SANITIZER"] == "thread" ? [.define("ThreadSanitizer")] : []
let swiftSettings: [SwiftSetting] =
    sanitizerSettings + [
        .swiftLanguageMode(.v6),
        .define("Media", .when(traits: ["Media"])),
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("MemberImportVisibility"),
    ]
let cSettings: [CSetting] = [.define("MEDIA", .when(traits: ["Media"]))]

func dependencies(_ module: Module) -> [Target.Dependency] {
    module.uses.map { .target(name: $0) }
        + module.usesForMedia.map { .target(name: $0, condition: media) }
}

func path(_ module: Module) -> String {
    switch module.name {
    case "TestSupport": "Tests/TestSupport"
    case "SoraBenchmarks": "Benchmarks/SoraBenchmarks"
    case "CDtlsTestClock", "CLiveObjects": "Tests/\(module.name)"
    default: "Sources/\(module.name)"
    }
}

// MARK: Selection for quick builds

let only = Set((Context.environment["SORA_ONLY"] ?? "").split(separator: ",").map(String.init))
func reachable(from roots: Set<String>) -> Set<String> {
    var seen = Set<String>()
    var queue = Array(roots)
    while let name = queue.popLast() {
        guard seen.insert(name).inserted, let module = modules.first(where: { $0.name == name })
        else { continue }
        queue += module.uses + module.usesForMedia + (roots.contains(name) ? module.testUses : [])
    }
    return seen
}
let kept =
    only.isEmpty
    ? Set(modules.map(\.name)).union(systemLibraries.map(\.name))
    : reachable(
        from: only.union(only.contains("Interop") ? ["LocalSora", "Sora", "SoraCLI"] : [])
            .union(only.contains("Examples") ? ["LocalSora", "Sora"] : [])
    )
    .union(["TestSupport", "SoraEmulator", "SoraLocking", "SoraWire", "CDtlsTestClock", "CLiveObjects"])

var targets: [Target] = systemLibraries.filter { kept.contains($0.name) }
for module in modules where kept.contains(module.name) {
    switch module.kind {
    case .cLibrary:
        targets.append(
            .target(
                name: module.name, dependencies: dependencies(module), path: path(module),
                cSettings: cSettings))
    case .executable:
        targets.append(
            .executableTarget(
                name: module.name, dependencies: dependencies(module), path: path(module),
                swiftSettings: swiftSettings))
    case .library, .support:
        targets.append(
            .target(
                name: module.name, dependencies: dependencies(module), path: path(module),
                swiftSettings: swiftSettings))
    }
    if module.hasTests && (only.isEmpty || only.contains(module.name)) {
        targets.append(
            .testTarget(
                name: "\(module.name)Tests",
                dependencies: [.target(name: module.name), "TestSupport"]
                    + (module.uses.contains("SoraWire") || module.name == "SoraWire" ? [] : ["SoraWire"])
                    + dependencies(module)
                    + module.testUses.map { .target(name: $0) },
                path: "Tests/\(module.name)Tests",
                swiftSettings: swiftSettings))
    }
}

// The examples of the API specification, as an application would compile them: in both language modes and without
// our upcoming features.
if kept.contains("Sora") && (only.isEmpty || only.contains("Sora")) {
    for (name, mode) in [("APIExamplesTests", SwiftLanguageMode.v6), ("APIExamplesSwift5Tests", .v5)] {
        targets.append(
            .testTarget(
                name: name, dependencies: ["Sora"], path: "Tests/\(name)",
                swiftSettings: [.swiftLanguageMode(mode), .treatAllWarnings(as: .error)]))
    }
}
if only.isEmpty || only.contains("Interop") {
    // Against real peers: scripts/test.sh runs them in a network namespace.
    targets.append(
        .testTarget(
            name: "InteropTests",
            dependencies: [
                "LocalSora", "Sora", "SoraICE", "SoraWire", "SoraLocking", "SoraNetwork", "SoraCrypto", "SoraFrames",
                "SoraHTTP", "SoraMessages", "TestSupport",
            ],
            path: "Tests/InteropTests", swiftSettings: swiftSettings))
}
if only.isEmpty || only.contains("Examples") {
    // Programs as an application would write them: the public API alone. The tests run them and check the articles.
    for name in ["ChatBot", "EventLogger", "FramePublisher", "LayerSwitcher", "Recorder"] {
        targets.append(
            .executableTarget(
                name: "Example\(name)", dependencies: ["Sora"], path: "Examples/\(name)", packageAccess: false,
                swiftSettings: [.swiftLanguageMode(.v6)]))
    }
    targets.append(
        .testTarget(
            name: "ExamplesTests", dependencies: ["Sora", "LocalSora"], path: "Tests/ExamplesTests",
            packageAccess: false,
            swiftSettings: [.swiftLanguageMode(.v6), .define("Media", .when(traits: ["Media"]))]))
}
if only.isEmpty {
    targets.append(
        .testTarget(name: "ArchitectureTests", path: "Tests/ArchitectureTests", swiftSettings: swiftSettings))
}

let package = Package(
    name: "sora-swift",
    products: only.isEmpty
        ? [
            .library(name: "Sora", targets: ["Sora"]),
            .library(name: "LocalSora", targets: ["LocalSora"]),
            .executable(name: "sora", targets: ["SoraCLI"]),
        ] : kept.contains("SoraCLI") ? [.executable(name: "sora", targets: ["SoraCLI"])] : [],
    traits: [
        .trait(
            name: "Media",
            description: "Codecs, cameras, microphones, files and windows (libvpx, opus, GStreamer, SDL2)"),
        .default(enabledTraits: ["Media"]),
    ],
    targets: targets
)
