/** What commands on webhooks have in common. */
import type { Command } from 'commander'
import { pathTo } from '../../client/envelope.ts'
import { serverCommand } from '../queues/connection.ts'

/** A command on webhooks of a server. */
export const webhookCommand = (usage: string, description: string, examples: readonly string[]): Command =>
  serverCommand(usage, description, examples, 'webhooks')

/** The path of what can be done with one consumer. */
export const consumerPath = (channel: string, consumer: string, act: string): string =>
  `${pathTo('/api/webhooks/channels', channel)}/${pathTo('consumers', consumer)}/${act}`
