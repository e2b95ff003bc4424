// The conformance suite sends no token. This stands between: it adds one, and names the server by the
// server's own address. Names that are foreign stay as they are, for the suite tries those, too.
//
//   node proxy.mjs PORT TOKEN      prints the port that it listens on
import http from "node:http";

const [port, token] = [Number(process.argv[2]), process.argv[3]];
const proxy = http.createServer((asked, answer) => {
  const headers = { ...asked.headers, authorization: `Bearer ${token}` };
  for (const name of ["host", "origin"]) {
    headers[name] = headers[name]?.replace(/(localhost|127\.0\.0\.1):\d+$/, `localhost:${port}`);
    if (headers[name] === undefined) delete headers[name];
  }
  const { url: path, method } = asked;
  const sent = http.request({ host: "127.0.0.1", port, path, method, headers }, (got) => {
    answer.writeHead(got.statusCode, got.headers);
    got.pipe(answer);
  });
  sent.on("error", () => answer.destroy());
  asked.pipe(sent);
});
proxy.listen(0, "127.0.0.1", () => console.log(proxy.address().port));
// It ends with the test that started it.
process.stdin.resume().on("end", () => process.exit());
