/** A receiver of messages over HTTP, in a process of its own: reads each and answers 204. Kept connections, no more than that. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

let received = 0
const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
  request.resume()
  request.once('end', () => {
    received += 1
    response.statusCode = 204
    response.end()
  })
})
server.listen(0, '127.0.0.1', () => {
  // It listens on a port, not on a path.
  const { port } = server.address() as AddressInfo
  process.send?.({ port })
})
process.on('message', () => process.send?.({ received }))
process.once('disconnect', () => process.exit(0))
