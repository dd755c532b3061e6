import Fastify from 'fastify'
import { describe, expect, it } from 'vitest'
import type { Facade } from '../api/facade.ts'
import { SystemClock } from '../core/system-clock.ts'
import { Facades } from './facades.ts'

const named = (about: string, owns?: (path: string) => boolean): Facade => ({
  about,
  ...(owns && { owns }),
  sendError: (_request, reply) => reply.code(418).send(about),
})

/** What a server with these APIs answers to unknown paths. */
async function answers(brought: readonly Facade[], ...urls: readonly string[]) {
  const facades = new Facades(brought, new SystemClock())
  const app = Fastify()
  app.setNotFoundHandler((request, reply) => facades.answerUnknown(request, reply))
  return Promise.all(
    urls.map(async (url) => {
      const { statusCode, body } = await app.inject(url)
      return [statusCode, body]
    }),
  )
}

describe('the APIs of a server', () => {
  it('answer what is below their paths, and one of them what is left', async () => {
    const brought = [named('rest'), named('tea', (path) => path.startsWith('/tea/'))]
    const [tea, left, files, api] = await answers(brought, '/tea/x?/y', '/teapot', '/assets/x', '/api/x')
    expect([tea, left]).toEqual([
      [418, 'tea'],
      [418, 'rest'],
    ])
    expect(files).toEqual([404, '404 page not found\n'])
    expect(api).toEqual([404, expect.stringContaining('"correlationId"')])
    expect(new Facades(brought, new SystemClock()).all.map(({ about }) => about).at(-1)).toBe('rest')
  })

  it('leave the rest to plain text where none takes it', async () => {
    expect(await answers([], '/teapot')).toEqual([[404, '404 page not found\n']])
  })
})
