/// The report for people: one file of HTML, without a script.
extension ExamReport {
    package var html: String {
        let numbers: [(String, Int, Bool)] = [
            ("passed", count(.passed), false), ("warned", count(.warned), false),
            ("failed", count(.failed) + count(.notDriven), count(.failed) + count(.notDriven) > 0),
            ("lost in silence", count(.lostInSilence), true), ("given up", count(.lostAndTold) + count(.lost), false),
            ("doubled", count(.doubled), true), ("lied", count(.lied), true), ("late", count(.late), true),
        ]
        let tiles = numbers.map { name, count, isBad in
            #"<div class="\#(isBad && count > 0 ? "tile bad" : "tile")"><b>\#(count)</b><span>\#(name)</span></div>"#
        }
        return """
            <!doctype html>
            <html lang="en">
            <head>
            <meta charset="utf-8">
            <meta name="viewport" content="width=device-width, initial-scale=1">
            <meta name="color-scheme" content="light dark">
            <title>Exam of \(sender.markup)</title>
            <style>\(Self.style)</style>
            </head>
            <body>
            <main>
            <h1>\(sender.markup)</h1>
            <p class="quiet">Examined on \(date.prefix(10)) by \(herald.markup) in \(Int(seconds.rounded())) s. \
            Driven by <code>\(driven.markup)</code>.</p>
            <div class="tiles">\(tiles.joined())</div>
            \(results.map(\.html).joined(separator: "\n"))
            </main>
            </body>
            </html>

            """
    }

    private static let style = """
        :root{--ink:#1c1d21;--quiet:#5c606b;--ground:#fbfbfc;--line:#dfe1e6;--good:#1a7f43;--warn:#8a5a00;--bad:#b3261e}
        @media(prefers-color-scheme:dark){:root{--ink:#eceef2;--quiet:#a3a8b4;--ground:#16171b;--line:#34373f;\
        --good:#5fd08c;--warn:#e6b450;--bad:#ff8a80}}
        *{box-sizing:border-box}
        body{margin:0;background:var(--ground);color:var(--ink);font:16px/1.5 system-ui,sans-serif}
        main{max-width:60rem;margin:0 auto;padding:2rem 1rem 4rem}
        h1{font-size:1.6rem;margin:0 0 .25rem;overflow-wrap:anywhere}
        .quiet,summary span,.source{color:var(--quiet)}
        code{font:.9em ui-monospace,monospace;overflow-wrap:anywhere}
        .tiles{display:grid;grid-template-columns:repeat(4,1fr);gap:.5rem;margin:1.5rem 0}
        @media(min-width:48rem){.tiles{grid-template-columns:repeat(8,1fr)}}
        .tile{border:1px solid var(--line);border-radius:.5rem;padding:.4rem .6rem;line-height:1.3}
        .tile b{display:block;font-size:1.5rem;font-variant-numeric:tabular-nums}
        .tile.bad b,.failed>summary>i{color:var(--bad)}
        .passed>summary>i{color:var(--good)}
        .warned>summary>i{color:var(--warn)}
        details{border-top:1px solid var(--line);padding:.6rem 0}
        summary{cursor:pointer;display:grid;grid-template-columns:1.5rem 1fr;gap:.25rem}
        summary i{font-style:normal;font-weight:700}
        summary b{margin-right:.5rem}
        details>*:not(summary){margin:.5rem 0 .5rem 1.75rem}
        ul{padding-left:1.1rem}
        .scroll{overflow-x:auto}
        table{border-collapse:collapse;font-size:.9rem}
        th,td{text-align:left;padding:.2rem .9rem .2rem 0;vertical-align:top;border-top:1px solid var(--line)}
        pre{white-space:pre-wrap;overflow-wrap:anywhere;font:.85rem ui-monospace,monospace}
        """
}

extension ScenarioResult {
    fileprivate var html: String {
        let kind = outcome.isFailure ? "failed" : outcome.rawValue.replacing(" ", with: "-")
        var parts = [
            #"<details class="\#(kind)"\#(outcome.isFailure ? " open" : "")>"#
                + #"<summary><i>\#(mark)</i><div><b>\#(id)</b><span>\#(title.markup) · \#(level.rawValue) · "#
                + #"\#(outcome.rawValue)</span></div></summary>"#
        ]
        if !findings.isEmpty {
            parts.append("<ul>" + findings.map { "<li>\($0.text.markup)</li>" }.joined() + "</ul>")
        }
        parts.append(#"<p class="source">\#(source.markup)<br>\#(facts)</p>"#)
        if !pushes.isEmpty {
            let rows = pushes.map { push in
                "<tr><td>\(push.id)</td><td>\(push.verdict.rawValue)</td><td>\(push.requestsMarkup)</td>"
                    + "<td>\(push.word.markup)</td></tr>"
            }
            parts.append(
                "<div class=\"scroll\"><table><tr><th>push</th><th>verdict</th><th>requests, and Herald's answers</th>"
                    + "<th>the sender says</th></tr>\(rows.joined())</table></div>"
            )
        }
        if !complaints.isEmpty { parts.append("<pre>\(complaints.joined(separator: "\n").markup)</pre>") }
        return parts.joined() + "</details>"
    }
}

extension ScenarioResult.Push {
    /// A line for each request.
    fileprivate var requestsMarkup: String {
        var lines = requests.map { request in
            let id = request.apnsID.map { " <code>\($0.markup)</code>" } ?? ""
            return "\(request.at) s, connection \(request.connection)\(id): \(request.answer.markup)"
        }
        if others > 0 { lines.append("and \(others) more") }
        return lines.isEmpty ? "none" : lines.joined(separator: "<br>")
    }
}
