/** The screens in the order of the rail, with the key that leads to each after `g`. */
export const SCREENS = [
  { to: '/', title: 'Overview', key: 'o', group: 'office' },
  { to: '/signatures', title: 'Signatures', key: 's', group: 'office' },
  { to: '/letters', title: 'Letters', key: 'l', group: 'office' },
  { to: '/redrives', title: 'Redrives', key: 'r', group: 'office' },
  { to: '/sources/queues', title: 'Queues', key: 'q', group: 'sources' },
  { to: '/sources/engines', title: 'Engines', key: 'e', group: 'sources' },
  { to: '/sources/outbox', title: 'Outbox', key: 'b', group: 'sources' },
  { to: '/sources/webhooks', title: 'Webhooks', key: 'w', group: 'sources' },
  { to: '/sources/kafka', title: 'Kafka', key: 'k', group: 'sources' },
  { to: '/history', title: 'History', key: 'h', group: 'records' },
  { to: '/settings', title: 'Settings', key: ',', group: 'records' },
] as const

export type Screen = (typeof SCREENS)[number]
