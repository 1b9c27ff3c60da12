/// Carries a value that the compiler cannot prove safe to a place where it is used under the SDK's own rules.
///
/// `@unchecked Sendable`: used only for (a) handler closures and completion closures of the application, which
/// by the contract of the API run on any thread, and (b) objects of this module whose state is lock protected but
/// which the API declares non-Sendable (`MediaChannel`, `MediaStream`).
struct Transfer<Value>: @unchecked Sendable {
    let value: Value
    init(_ value: Value) { self.value = value }
}
