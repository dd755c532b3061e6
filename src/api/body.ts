/**
 * Reads request bodies up to a limit, and gets rid of what a client still sends after its answer.
 * Closing a connection with unread bytes resets it, and the client may never see the answer; so the rest is
 * discarded for a while first, and only a client that goes on and on is cut off.
 */
import type { IncomingMessage } from 'node:http'
import { failure } from '../core/errors.ts'

/** How much, and for how long, an answered client may still send before its connection is closed. */
const DISCARD_BYTES = 16_000_000
const DISCARD_MS = 5_000

const EMPTY = Buffer.alloc(0)

/** The client went away in the middle of its request; nobody is left to answer. */
export class ClientGone extends Error {
  override readonly name = 'ClientGone'
}

const SECONDS = Symbol('seconds for the body')

interface Limited {
  [SECONDS]?: number
}

/** How long the body of a request may take from when it is read. Set once for all APIs, so that none can forget it. */
export function limitBodyTime(request: IncomingMessage & Limited, seconds: number): void {
  request[SECONDS] = seconds
}

/** The whole body; fails as soon as it is known to exceed `limit`, without reading the rest, and when it takes too long. */
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

/** After the answer: discards what is left of the request, and closes the connection if that does not end. */
export function discardRest(request: IncomingMessage): void {
  if (request.complete || request.readableEnded || request.destroyed) return
  let discarded = 0
  // Destroying a request that is not complete takes its connection along.
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

/**
 * Sizes as the body limits print them: binary units when the number is a multiple of 1024, decimal ones
 * otherwise, always with one decimal (`250.0KiB`, `5.0MB`); plain bytes below one unit (`512B`).
 */
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
