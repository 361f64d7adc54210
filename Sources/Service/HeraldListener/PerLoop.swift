package import NIOCore

/// One value for each event loop of a group.
package struct PerLoop<Value: Sendable>: Sendable {
    private let values: [ObjectIdentifier: Value]
    /// The values in the order of the loops.
    package let all: [Value]

    package init(_ group: any EventLoopGroup, make: (any EventLoop) -> Value) {
        var values: [ObjectIdentifier: Value] = [:]
        var all: [Value] = []
        for loop in group.makeIterator() {
            let value = make(loop)
            values[ObjectIdentifier(loop)] = value
            all.append(value)
        }
        self.values = values
        self.all = all
    }

    /// The value of a loop; nil for a loop of another group.
    package subscript(loop: any EventLoop) -> Value? {
        values[ObjectIdentifier(loop)]
    }
}
