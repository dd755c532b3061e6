import { EventEmitter } from 'node:events'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { listenForStop } from './terminal.ts'

let signals: EventEmitter
let exits: number[]

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'performance'] })
  signals = new EventEmitter()
  exits = []
})

afterEach(() => vi.useRealTimers())

const listen = () => listenForStop(signals, (code) => void exits.push(code))

describe('a signal to stop', () => {
  it('asks for a stop in good order', async () => {
    const received = listen()
    signals.emit('SIGTERM', 'SIGTERM')
    await received
    expect(exits).toEqual([])
  })

  it('that arrives twice at once, as Ctrl-C under npm does, counts once', async () => {
    listen()
    signals.emit('SIGINT', 'SIGINT')
    vi.advanceTimersByTime(100)
    signals.emit('SIGINT', 'SIGINT')
    expect(exits).toEqual([])
  })

  it.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ])('given again (%s) ends the process at once with %i', (signal, code) => {
    listen()
    signals.emit('SIGTERM', 'SIGTERM')
    vi.advanceTimersByTime(1_000)
    signals.emit(signal, signal)
    expect(exits).toEqual([code])
  })

  it('ends the process when the stop takes too long', () => {
    listen()
    signals.emit('SIGTERM', 'SIGTERM')
    vi.advanceTimersByTime(10_000)
    expect(exits).toEqual([1])
  })
})
