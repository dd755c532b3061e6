import { afterEach, describe, expect, it } from 'vitest'
import { closeServers } from '../../../../test/world/scripted-server.ts'
import { ID, scriptedWebhooks } from '../../../../test/world/webhooks/scripted.ts'
import { endpoint } from './views.ts'

afterEach(closeServers)

describe('a list', () => {
  it('keeps the statuses that it understood in its links', async () => {
    const { app } = await scriptedWebhooks({
      messages: {
        list: async (_, statuses) => ({
          items: [{ id: ID, messageId: JSON.stringify(statuses) }],
          first: 'a+',
          last: 'b/=',
        }),
        listScheduled: async (_, status) => ({
          items: [{ id: ID, messageId: String(status) }],
          first: 'a',
          last: 'b',
        }),
      },
    })
    const list = (
      await app.inject('/channel/c/messages?status=102&status=abc&status=-1&status=102&next=z')
    ).json()
    expect(list).toEqual({
      Result: ['/channel/c/message/%5B102%2C-1%5D'],
      Pages: {
        next: '/channel/c/messages?next=b%2F%3D&status=102&status=-1',
        previous: '/channel/c/messages?previous=a%2B&status=102&status=-1',
      },
      Links: null,
    })
    expect((await app.inject('/channel/c/messages?status=x')).json().Result).toEqual([
      '/channel/c/message/%5B%5D',
    ])
    expect((await app.inject('/channel/c/scheduled-messages?status=101')).json()).toEqual({
      pages: {
        next: '/channel/c/scheduled-messages?next=b&status=101',
        previous: '/channel/c/scheduled-messages?previous=a&status=101',
      },
      result: ['/channel/c/scheduled-message/101'],
    })
  })
})

describe('the endpoint of a job', () => {
  it.each([
    ['http://host/hook', 'http://host/hook'],
    ['HTTP://Host:80', 'HTTP://Host:80'],
    ['http://host/a@b/%41;x', 'http://host/a@b/%41;x'],
    ['https://user:pass@host/hook', 'https://host/hook'],
    ['https://user:p@ss@host/hook', 'https://host/hook'],
    ['https://user@host?key=k#f', 'https://host'],
    ['https://host/hook?to=a@b', 'https://host/hook'],
    ['https://host/hook#f?x', 'https://host/hook'],
    ['https://host\\\\a@b', 'https://host\\\\a@b'],
  ])('is the address %s without what may be credentials', (address, shown) => {
    expect(endpoint(address)).toBe(shown)
  })
})

describe('the status of a seed', () => {
  it('shows addresses in their parts, without credentials and tokens', async () => {
    const { app } = await scriptedWebhooks({
      seeding: {
        status: async () => ({
          hash: 'ab',
          producers: [{ id: 'p', name: 'P' }],
          channels: [],
          consumers: [
            {
              id: 'k',
              name: 'K',
              channel: 'c',
              callbackUrl: 'https://user:pass@host:8443/a%2Fb/é?x=1#f',
              type: 'pull',
            },
          ],
        }),
      },
    })
    expect((await app.inject('/_status')).json()).toEqual({
      SeedData: {
        DataHash: 'ab',
        Producers: [{ ID: 'p', Name: 'P', Token: '' }],
        Channels: [],
        Consumers: [
          {
            ID: 'k',
            Name: 'K',
            Token: '',
            CallbackURL: {
              Scheme: 'https',
              Opaque: '',
              User: null,
              Host: 'host:8443',
              Path: '/a/b/é',
              RawPath: '/a%2Fb/%C3%A9',
              OmitHost: false,
              ForceQuery: false,
              RawQuery: '',
              Fragment: '',
              RawFragment: '',
            },
            Channel: 'c',
            Type: 'pull',
          },
        ],
      },
      AppStatus: 3,
    })
  })
})
