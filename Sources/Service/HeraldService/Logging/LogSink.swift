/// The output of a log.
///
/// It gets whole lines, so that lines of several threads never mix.
package protocol LogSink: Sendable {
    func write(_ line: [UInt8])
}
