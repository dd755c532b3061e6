/**
 * Reads request bodies up to a limit, and discards what a client still sends after its answer. Closing a connection with unread bytes
 * resets it, and the client may never see the answer; so only a client that goes on and on is cut off.
 */
import type { IncomingMessage } from 'node:http'
import { failure } from '../core/errors.ts'

/** How much, and for how long, an answered client may still send. */
const DISCARD_BYTES = 16_000_000
const DISCARD_MS = 5_000

const EMPTY = Buffer.alloc(0)

/** The client left in the middle of its request. */
export class ClientGone extends Error {
  override readonly name = 'ClientGone'
}

const SECONDS = Symbol('seconds for the body')

interface Limited {
  [SECONDS]?: number
}

/** How long a body may take. Set once for all APIs, so that none can forget it. */
export function limitBodyTime(request: IncomingMessage & Limited, seconds: number): void {
  request[SECONDS] = seconds
}

/** The whole body; fails as soon as it exceeds `limit`, without reading the rest, or takes too long. */
export function readBody(request: IncomingMessage & Limited, limit: number): Promise<Buffer> {
  const declared = Number(request.headers['content-length'] ?? 0)
  if (declared > limit) return Promise.reject(tooLarge(limit))
  return new Promise((resolve, reject) => {
    let first: Buffer | undefined
    let more: Buffer[] | undefined
    let size = 0
    const seconds = request[SECONDS]
    const late = () => {
      settle()
      reject(failure('body_late', { seconds: seconds ?? 0 }))
    }
    const timer = seconds === undefined ? undefined : setTimeout(late, seconds * 1_000)
    const settle = () => {
      clearTimeout(timer)
      request.off('data', take)
      request.off('end', finish)
      request.off('error', give)
      request.off('close', give)
    }
    const take = (chunk: Buffer) => {
      size += chunk.length
      if (size > limit) {
        settle()
        reject(tooLarge(limit))
      } else if (first === undefined) first = chunk
      else if (more === undefined) more = [first, chunk]
      else more.push(chunk)
    }
    const finish = () => {
      settle()
      resolve(more === undefined ? (first ?? EMPTY) : Buffer.concat(more, size))
    }
    const give = () => {
      settle()
      reject(new ClientGone('the connection closed before the body was complete'))
    }
    request.on('data', take)
    request.on('end', finish)
    request.on('error', give)
    request.on('close', give)
  })
}

const tooLarge = (limit: number) => failure('body_too_large', { limit: formatByteSize(limit) })

/** Discards the rest of an answered request, and closes the connection if it does not end. */
export function discardRest(request: IncomingMessage): void {
  if (request.complete || request.readableEnded || request.destroyed) return
  let discarded = 0
  // Destroying an incomplete request takes its connection along.
  const cutOff = () => request.destroy()
  const timer = setTimeout(cutOff, DISCARD_MS)
  timer.unref()
  request.on('data', (chunk: Buffer) => {
    discarded += chunk.length
    if (discarded > DISCARD_BYTES) cutOff()
  })
  // Resets after the answer are the client's business.
  request.on('error', () => {})
  request.once('close', () => clearTimeout(timer))
  request.once('end', () => clearTimeout(timer))
  request.resume()
}

/** Binary units for multiples of 1024, decimal ones otherwise, with one decimal (`250.0KiB`, `5.0MB`); plain bytes below one unit. */
const UNITS = {
  1024: ['KiB', 'MiB', 'GiB', 'TiB'],
  1000: ['kB', 'MB', 'GB', 'TB'],
} as const

export function formatByteSize(bytes: number): string {
  const base = bytes % 1024 === 0 ? 1024 : 1000
  let size = bytes
  let unit = 'B'
  for (const next of UNITS[base]) {
    if (size < base) break
    size /= base
    unit = next
  }
  return unit === 'B' ? `${bytes}B` : `${size.toFixed(1)}${unit}`
}
