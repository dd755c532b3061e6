/** Compares every status that is answered with those that the OpenAPI document has for the call. */
import type { FastifyInstance } from 'fastify'

/** Fails a reply whose status is not documented; for servers that tests make of some routes. */
export function insistOnDocumentedStatuses(app: FastifyInstance): void {
  app.addHook('onSend', async ({ method, routeOptions }, reply, payload) => {
    // A path's other methods, and paths that nobody has, are in no document.
    const schema = (routeOptions.schema ?? {}) as { readonly hide?: boolean; readonly response?: object }
    if (schema.response !== undefined && schema.hide !== true && !(reply.statusCode in schema.response))
      throw new Error(`${method} ${routeOptions.url} answers ${reply.statusCode}, which is not documented`)
    return payload
  })
}
