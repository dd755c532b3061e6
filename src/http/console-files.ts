/**
 * The console: files that Vite built from `console/`, and their page. Its policy allows nothing from elsewhere and no script but our files;
 * inline styles carry a nonce that is new with every answer.
 */
import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import fastifyStatic from '@fastify/static'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { VERSION } from '../core/version.ts'
import { ASSETS, type Facades } from './facades.ts'
import { homePage, PAGE_HEADERS } from './page.ts'

/** The same relative path in the sources and in the published package. */
export const CONSOLE_FOLDER = fileURLToPath(new URL('../../console/dist', import.meta.url))

/** Placeholder of the nonce in the built page. */
const NONCE = /__NONCE__/g
const NONCE_BYTES = 16

const policyWith = (nonce: string): string =>
  `default-src 'none'; script-src 'self'; style-src 'self' 'nonce-${nonce}'; img-src 'self' data:; font-src 'self'; ` +
  `connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`

/** The console's page, or a plain one while it is not built. Read each time, so that a build shows at once. */
export async function sendConsolePage(reply: FastifyReply, folder: string): Promise<void> {
  reply.headers({ ...PAGE_HEADERS, 'cache-control': 'no-store', 'cross-origin-opener-policy': 'same-origin' })
  const built = await readFile(join(folder, 'index.html'), 'utf8').catch(absent)
  if (built === null) {
    reply.send(homePage(VERSION))
    return
  }
  const nonce = randomBytes(NONCE_BYTES).toString('base64')
  reply.header('content-security-policy', policyWith(nonce)).send(built.replace(NONCE, nonce))
}

function absent(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return null
  throw error
}

interface AssetRoutesOptions {
  readonly folder: string
  readonly facades: Facades
}

/** Names of files change with their content, so browsers may keep them for good. */
export async function assetRoutes(
  app: FastifyInstance,
  { folder, facades }: AssetRoutesOptions,
): Promise<void> {
  app.addHook('onRoute', (route) => {
    route.config = { ...route.config, role: 'open' }
  })
  // Nothing is at a path that leads out of the folder.
  app.setErrorHandler<{ statusCode?: number }>((error, request, reply) => {
    if ((error.statusCode ?? 500) >= 500) throw error
    facades.answerUnknown(request, reply)
  })
  await app.register(fastifyStatic, {
    root: join(folder, 'assets'),
    prefix: ASSETS,
    decorateReply: false,
    index: false,
    dotfiles: 'ignore',
    preCompressed: true,
    immutable: true,
    maxAge: '365d',
    // A server without a built console is fine.
    suppressWarning: true,
    setHeaders: (reply) => reply.header('x-content-type-options', 'nosniff'),
  })
}
