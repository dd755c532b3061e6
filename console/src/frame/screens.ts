/** The screens in the order of the rail, each with the key that leads to it after `g`, and the lines of its sign. */
export const SCREENS = [
  {
    to: '/',
    title: 'Overview',
    key: 'o',
    group: 'office',
    icon: 'M4 4h6v6H4zM14 4h6v6h-6zM4 14h6v6H4zM14 14h6v6h-6z',
  },
  {
    to: '/signatures',
    title: 'Signatures',
    key: 's',
    group: 'office',
    icon: 'M4 5h16v5H4zM4 14h16v5H4zM7.5 7.5h5M7.5 16.5h5',
  },
  { to: '/letters', title: 'Letters', key: 'l', group: 'office', icon: 'M3 6h18v12H3zM3.5 7l8.5 6.5L20.5 7' },
  {
    to: '/redrives',
    title: 'Redrives',
    key: 'r',
    group: 'office',
    icon: 'M19.5 12a7.5 7.5 0 1 1-2.3-5.4M19.5 3v4h-4',
  },
  { to: '/sources/queues', title: 'Queues', key: 'q', group: 'sources', icon: 'M4 6h16M4 12h16M4 18h10' },
  {
    to: '/sources/engines',
    title: 'Engines',
    key: 'e',
    group: 'sources',
    icon: 'M12 8.5a3.5 3.5 0 1 0 0 7a3.5 3.5 0 1 0 0-7M12 3v3M12 18v3M3 12h3M18 12h3M5.6 5.6l2 2M16.4 16.4l2 2M5.6 18.4l2-2M16.4 7.6l2-2',
  },
  {
    to: '/sources/outbox',
    title: 'Outbox',
    key: 'b',
    group: 'sources',
    icon: 'M4 14v6h16v-6M12 15V4M8 8l4-4l4 4',
  },
  {
    to: '/sources/webhooks',
    title: 'Webhooks',
    key: 'w',
    group: 'sources',
    icon: 'M12 4a2.5 2.5 0 1 0 0 5a2.5 2.5 0 1 0 0-5M6 15a2.5 2.5 0 1 0 0 5a2.5 2.5 0 1 0 0-5M18 15a2.5 2.5 0 1 0 0 5a2.5 2.5 0 1 0 0-5M10.7 8.7l-3.5 6.5M13.3 8.7l3.5 6.5',
  },
  {
    to: '/sources/kafka',
    title: 'Kafka',
    key: 'k',
    group: 'sources',
    icon: 'M8 9.5a2.5 2.5 0 1 0 0 5a2.5 2.5 0 1 0 0-5M17 4a2 2 0 1 0 0 4a2 2 0 1 0 0-4M17 16a2 2 0 1 0 0 4a2 2 0 1 0 0-4M10.3 11l5-3.8M10.3 13l5 3.8M8 3v6.5M8 14.5V21',
  },
  {
    to: '/sources/azure',
    title: 'Azure tables',
    key: 'a',
    group: 'sources',
    icon: 'M4 5h16v14H4zM4 10h16M4 14.5h16M10 5v14',
  },
  {
    to: '/history',
    title: 'History',
    key: 'h',
    group: 'records',
    icon: 'M12 4a8 8 0 1 0 0 16a8 8 0 1 0 0-16M12 8v4.5l3 2',
  },
  {
    to: '/settings',
    title: 'Settings',
    key: ',',
    group: 'records',
    icon: 'M4 7h9M18 7h2M4 17h2M11 17h9M15.5 4.5v5M8.5 14.5v5',
  },
] as const

export type Screen = (typeof SCREENS)[number]

/** The id of the element that every screen is in. */
export const SCREEN_ID = 'screen'
