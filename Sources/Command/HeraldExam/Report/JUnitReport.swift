/// The report for continuous integration: JUnit's XML.
extension ExamReport {
    package var junit: String {
        let failures = results.count { $0.outcome.isFailure }
        let skipped = count(.unsupported) + count(.notApplicable)
        var lines = [
            #"<?xml version="1.0" encoding="UTF-8"?>"#,
            #"<testsuite name="herald exam: \#(sender.markup)" tests="\#(results.count)" failures="\#(failures)" "#
                + #"errors="0" skipped="\#(skipped)" time="\#(seconds)" timestamp="\#(date.markup)">"#,
        ]
        for result in results {
            lines.append(#"  <testcase classname="exam" name="\#(result.id.markup)" time="\#(result.seconds)">"#)
            let words = result.findings.map(\.text).joined(separator: "\n")
            let more = ([words, result.source] + result.complaints).joined(separator: "\n").markup
            switch result.outcome {
            case .failed, .notDriven:
                lines.append(
                    #"    <failure message="\#((result.findings.first?.text ?? "").markup)">\#(more)</failure>"#
                )
            case .unsupported, .notApplicable: lines.append(#"    <skipped message="\#(words.markup)"/>"#)
            case .warned: lines.append("    <system-out>\(more)</system-out>")
            case .passed: break
            }
            lines.append("  </testcase>")
        }
        return (lines + ["</testsuite>", ""]).joined(separator: "\n")
    }
}

extension String {
    /// The text in HTML and XML; what XML cannot have is left out.
    var markup: String {
        var text = ""
        for scalar in unicodeScalars {
            switch scalar {
            case "&": text += "&amp;"
            case "<": text += "&lt;"
            case ">": text += "&gt;"
            case "\"": text += "&quot;"
            case "\n", "\t": text.unicodeScalars.append(scalar)
            case _ where scalar.value < 0x20 || (0xFFFE...0xFFFF).contains(scalar.value): break
            default: text.unicodeScalars.append(scalar)
            }
        }
        return text
    }
}
