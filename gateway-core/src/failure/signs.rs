//! What a failure's words and typed names can mean, and the phrases that mean it.
//!
//! The table was drawn from public reports and from the vendors' own error lists (Anthropic, OpenAI, Google, Azure, AWS,
//! Z.ai/GLM, MiniMax, Moonshot/Kimi, DashScope/Qwen, DeepSeek, Groq, OpenRouter, Copilot). One sign may stand beside
//! others; which of them decides is the business of `judge.rs`.

use std::sync::LazyLock;

use super::words::Phrasebook;

macro_rules! signs {
    ($($(#[$doc:meta])* $name:ident => [$($phrase:literal),* $(,)?]),* $(,)?) => {
        /// One meaning.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub(super) enum Sign { $($(#[$doc])* $name),* }

        const TABLE: &[(u8, &[&str])] = &[$((Sign::$name as u8, &[$($phrase),*])),*];
    };
}

signs! {
    /// A wall before the service: a challenge page, a block of this address.
    EdgeBlock => [
        "just a moment", "attention required", "enable javascript ~2 cookies", "cloudflare ~4 challenge",
        "challenge ~3 cloudflare", "managed challenge", "error ~2 1015|1020|1010|1006", "used cloudflare to restrict",
        "checking your browser", "verify ~3 you are ~2 human", "sorry you have been blocked", "cloudflare ray id",
        "browser verification", "bot|ddos protection", "web application firewall", "blocked by ~3 firewall|waf",
        "captcha",
    ],
    ContentFilter => [
        "content ~1 filter|filtered|filtering|moderation", "content|usage management|filtering policy",
        "content policy", "policy ~2 violation|violating", "violates|violated|violating|violate ~3 usage|content|our|safety ~2 policy|policies|guidelines",
        "flagged ~3 as|for|by|potentially|possible", "sensitive ~1 words|word|content|information|data", "inappropriate ~1 content|input",
        "data inspection failed", "safety system|filter|filters|settings|reasons|policy|policies|guidelines", "blocked ~4 safety|recitation|blocklist",
        "prohibited content|use", "responsible ai", "moderation ~2 failed|flagged|blocked|blocks|error", "cyber policy",
        "content exists risk", "prompt|input|output|request|response ~3 blocked ~4 filter|filtering|policy|moderation|safety",
        "high risk ~2 rejected|blocked|content", "contain|contains|containing ~2 unsafe|harmful|sensitive|prohibited|offensive|explicit", "harmful content", "cant|cannot|unable ~2 help|assist ~1 with that|this",
        "finish reason ~1 safety|recitation|blocklist|spii|prohibited", "block reason", "stop reason ~1 refusal", "input|output|prompt|response ~1 sensitive",
        "敏感", "违规", "不安全", "内容审核", "内容安全", "安全策略",
    ],
    /// The conversation as sent breaks a rule of the protocol; sent again it breaks it again.
    BrokenHistory => [
        "tool use|call|calls ~8 without ~3 tool result|response|output|results|responses", "tool result|results ~9 corresponding|matching|preceding|previous ~3 tool use|call|calls|block|assistant",
        "tool result|results ~4 without|unexpected", "unexpected ~3 tool use|result", "tool calls ~3 must be followed", "tool call|use ids ~2 did not have|match", "must be a response to a ~1 preceding|preceeding",
        "did not have response messages", "tool result|results|response|responses ~12 tool use|call|calls", "did not find ~3 tool result|use|call", "tool call|use ~1 id|ids ~3 not ~1 found|exist", "no tool call|output|result ~2 found", "roles must alternate", "must alternate between",
        "function response ~8 function call", "function call ~5 comes immediately after", "thinking ~9 cannot|must ~1 be modified|removed",
        "thinking ~6 cannot be modified", "signature ~6 thinking", "thinking ~6 signature", "thought signature", "invalid ~2 signature",
        "when thinking is enabled ~8 must start", "expected thinking ~4 but|found", "final block ~6 thinking", "each tool use ~2 must",
        "tool use ids ~3 unique", "duplicate|multiple ~4 tool ~2 id|ids|result|results", "missing ~3 tool result|results|output|outputs|response|responses",
        "content blocks must be non empty", "empty text|content ~1 block|blocks",  "must have non empty content", "content ~3 cannot be empty", "messages|parts|content|contents ~3 must not be empty",
        "conversation must ~2 start|end|alternate", "first message must", "last message must", "assistant message prefill",
        "reasoning ~6 without ~4 following", "item|items ~4 required ~2 following|preceding", "without its required ~3 item",
        "lone|unpaired|invalid|low|high ~2 surrogate|surrogates", "surrogates not allowed", "reasoning content ~6 must be passed|missing",
        "reasoning content ~4 missing", "encrypted content ~9 verified|decrypted|invalid|parsed", "invalid encrypted content", "number of ~2 function|tool calls ~3 responses|results", "tool ~1 result|results|response|responses ~4 follow|follows ~3 tool",
        "item with id ~2 not found", "previous response ~3 not found",
    ],
    /// An image or a file that cannot be read; left out, the rest passes.
    BadMedia => [
        "image|images|pdf|attachment|attachments|audio|video|screenshot ~7 processed|invalid|unsupported|corrupt|corrupted|unreadable|decoded|mismatch|malformed|damaged",
        "process|decode|read|parse|download|fetch|invalid|unsupported|unreadable|corrupt|corrupted ~3 image|images|pdf|attachment|attachments|audio|video|screenshot",
        "supports|accepts|allows ~4 # image|images|attachment|attachments|file|files|pages", "image was specified using", "image ~2 media type ~6 appears", "invalid base64 ~4 image|data|url", "image|images|pdf|attachment|audio|video ~4 not valid|readable|supported",
        "pdf|document|file ~3 password protected",
    ],
    /// A long-context feature the plan lacks; a shorter conversation passes, waiting does not help.
    TierGate => [
        "extra usage ~4 long context", "usage credits ~4 long|1m context", "required for ~2 long|1m context", "long context ~4 requires|beta|not",
        "1m ~2 context ~6 requires|required|not|unavailable|disabled|upgrade", "1m context ~6 subscription|plan",
    ],
    /// While shortening the conversation: it cannot be shortened further this way.
    Compaction => ["compaction", "compacting", "compacted", "summarization|summarisation ~2 failed|error", "too large to compact", "to compact"],
    /// The balance pays for a shorter answer.
    Afford => ["can only afford"],
    /// One request above the whole minute's budget.
    TooLarge => [
        "request too large", "limit # requested # ~8 reduce", "reduce your message size", "request ~2 exceeds|larger ~4 tokens per minute",
        "single request ~4 exceeds|exceed",
    ],
    /// Too many bytes: images, attachments; tokens do not matter.
    Bytes => [
        "image|images|attachment|attachments|document|documents|file|files|pdf|media ~5 too large|big|many",
        "request entity too large", "payload|body|content|entity too large", "request|body|payload ~4 exceeds ~3 maximum|max|size|limit ~3 size|bytes|mb",
        "exceeds ~5 # ~1 mb|mib|bytes", "exceeds ~4 5mb|10mb|20mb|30mb|32mb|50mb|100mb", "too large max ~1 32mb|20mb|10mb|50mb|100mb|#", "image|images ~5 exceed|exceeds|exceeded|too", "pdf ~3 pages",
        "maximum|max request ~1 size", "exceed|exceeds|exceeded ~3 maximum|max|allowed ~2 content|body|payload length|size", "request body ~3 too large", "message|messages|request|body|prompt|content ~1 size # exceeds|exceeded", "length limit exceeded", "too many images",
    ],
    Overflow => [
        "context length|window|size ~10 enough", "keep the first # tokens",
        "prompt|input|message|messages|conversation|history|query|text|thread|chat ~3 too long|large|big", "context ~3 too long|large|big|full|small", "maximum|max ~1 context ~1 length|window|size",
        "context ~2 length|window|size|limit|space ~4 exceed|exceeds|exceeded|exceeding|overflow|limit|full|reached|exhausted|too", "context exceeds|exceeded|overflow|overflowed|full",
        "exceed|exceeds|exceeded|exceeding|overflows|over|outside|beyond|greater|than|larger|longer ~6 context", "context overflow", "ran|run|running|out ~4 room ~4 context",
        "available context", "input|prompt ~3 token|tokens|length ~4 exceed|exceeds|exceeded|over|above|maximum", "token|tokens count ~4 exceed|exceeds|exceeded",
        "exceed|exceeds|exceeded|exceeding|above|over ~3 maximum|max|allowed ~3 number|input|prompt|length|sequence|token|tokens ~2 tokens|length|size|allowed|limit|count",
        "maximum|max ~2 input|prompt|sequence|model ~1 length|tokens|size|limit", "maximum|max prompt length", "reduce the length", "reduce|shorten|truncate ~3 prompt|input|messages|conversation|context|history",
        "resulted in # tokens", "no longer fits|fit", "does|do not fit", "session|conversation|thread too large|long", "string too long", "string above max length",
        "range of input length", "larger than ~4 context|window|maximum", "longer than ~6 context|length|maximum", "exceed|exceeds|exceeding ~3 model|models ~3 limit|maximum|context|length", "exceeded ~2 model|models ~1 token|tokens|context|input|length|maximum|window",
        "token|tokens|prompt|input ~1 cannot|must|may|should ~1 exceed",
        "has reached its context window", "token limit ~2 exceeded|reached ~3 model|context|input|prompt", "# tokens # maximum", "input ~2 length ~4 exceeds",
        "超出 ~6 长度", "超过 ~8 长度", "上下文 ~4 超", "输入过长", "过长", "超长", "上下文长度",
    ],
    /// Media that can be left out.
    Media => ["image", "images", "attachment", "attachments", "document", "documents", "pdf", "pdfs", "file", "files", "media", "screenshot", "screenshots", "图片", "附件"],
    /// The question fits, question and answer together do not.
    OutputTooBig => [
        "input length and max tokens exceed", "max tokens|output|completion ~6 exceed|exceeds|exceeded|large|greater|high|maximum|between",
        "max completion|output tokens ~5 exceed|exceeds|too|large|greater|maximum|between", "# in the completion|output|max", "maximum allowed number of output tokens",
        "# ~2 output|completion tokens ~4 exceed|exceeds|maximum",
    ],
    /// The length asked for the answer is beyond what the model gives: the question has no part in it.
    OutputCap => [
        "max tokens|completion|output|new ~2 must be", "range of max tokens|completion|output", "exceed|exceeds|exceeded ~3 output token|tokens maximum|max", "maximum value for max tokens", "response|output|completion ~2 exceed|exceeds|exceeded ~3 token|tokens limit|maximum", "maximum allowed number of output tokens", "max tokens ~6 model|models ~2 maximum|limit ~2 output|completion",
    ],
    /// "The service is limiting, and it is not your limit."
    NotYourLimit => ["not ~1 your ~2 limit|limits|quota|usage", "temporarily limiting requests", "unrelated to your usage"],
    Overload => [
        "overloaded", "overload", "overloading", "at|over|full|max|maximum|exceeded|insufficient|limited|no ~1 capacity", "capacity ~4 exceeded|reached|exhausted|constraints|limited|limit|unavailable|available|error",
        "high|heavy|peak|unprecedented|increased|higher|exceptionally ~2 demand|load|traffic|volume", "server|servers|service|system|engine|model|backend|we ~3 busy", "temporarily unavailable|overwhelmed", "service|resource ~2 unavailable",
        "slow down", "queue ~2 full|long", "internal server error", "server had an error", "try again ~3 different model", "no available ~3 account|accounts|provider|providers|credential|credentials|channel|channels|worker|workers|server|servers|backend|instance",
        "model ~2 loading|warming", "not ready", "too many users", "currently unavailable", "server|servers|service ~3 unavailable|overwhelmed|degraded", "no healthy upstream",
        "负载", "繁忙", "过载", "访问量过大", "拥挤", "混雑", "服务不可用",
    ],
    /// An aggregator's own account with the vendor; ours is fine.
    UpstreamShared => [
        "rate limited upstream", "limited|throttled ~2 upstream", "upstream provider shared pool", "upstream ~3 rate limit|limited|throttled", "add your own ~1 key", "shared ~2 pool|capacity|quota",
        "upstream ~3 429|throttling", "provider rate limit exceeded",
    ],
    /// Dynamic shared capacity of Vertex: no quota, no detail.
    SharedExhausted => ["resource exhausted"],
    /// Paid use beyond the plan.
    ExtraUsage => ["extra usage", "usage credits"],
    Money => [
        "insufficient|low|negative|zero|no|not|enough|inadequate ~2 balance|funds|credit|credits", "balance ~4 insufficient|low|exhausted|depleted|negative|empty|zero|enough|overdue",
        "credit|credits ~4 low|exhausted|depleted|expired|insufficient|empty|used|enough|zero|required|consumed", "out of ~2 credit|credits|funds|money", "out of extra usage",
        "exhausted|depleted|spent|used ~4 credit|credits|balance|funds", "requires|require|need|needs ~1 more credits", "payment ~3 required|failed|declined|overdue|method",
        "billing ~2 hard|soft|limit|error|inactive|disabled|suspended",
        "recharge", "arrears", "arrearage", "arrear", "overdue", "prepay|prepaid|prepayment ~3 depleted|exhausted|used", "free ~2 trial ~4 ended|expired|exhausted|over",
        "subscription|plan|package|membership ~3 expired|ended|cancelled|canceled|lapsed|inactive", "prompt tokens limit exceeded", "no ~2 active|valid ~2 subscription|plan", "not active ~6 billing", "not included", "usage not included",
        "wallet", "purchase ~2 credits ~4 continue", "insufficient balance", "usage balance", "doesnt|dont|not|without ~2 any|enough|sufficient ~1 credit|credits|licenses", "insufficient user|token quota", "tier|plan|trial|subscription ~3 discontinued", "with your ~2 plan upgrade", "pre consume|consumed ~1 quota", "user|token quota ~2 enough|need",
        "余额", "用户额度", "令牌额度", "剩余额度", "预扣", "欠费", "充值", "资源包", "套餐 ~4 到期", "残高",
    ],
    /// A cap on money that somebody set; a date may end it, but it is money.
    SpendCap => [
        "spend|spending|cost ~1 limit|cap|budget", "monthly ~1 spend|spending|budget", "budget ~4 exceeded|exhausted|reached|limit|used", "exceeded ~2 budget", "exceed|over ~2 budget",
        "hard limit ~3 reached|exceeded", "key limit exceeded", "reached for this month", "maximum ~6 for this month", "specified ~2 usage limits", "api usage limits",
    ],
    /// The same words are money at one vendor and a throttle at another.
    QuotaOrMoney => [
        "insufficient quota", "exceeded your current quota", "exceeded current quota", "quota exceeded ~2 check your plan", "quota ~2 insufficient|not",
    ],
    /// A window of the plan is spent.
    UsageLimit => [
        "usage limit|limits|cap|quota", "usage ~3 exceeded|exhausted|reached|depleted|used", "hit|reached|exceeded|exhausted|maxed|used|consumed|exceed ~5 limit|limits|quota|cap|allowance|allotment|allocation|usage",
        "session|weekly|daily|monthly|hourly|hour|5h|7d|week|day|opus|sonnet|fable|plan|message|messages|prompt ~2 limit|limits|quota|cap|allowance ~3 reached|hit|exceeded|exhausted|used|reset|resets",
        "session|weekly|daily|monthly|hourly|5h ~2 limit|limits|quota|cap|allowance", "quota ~5 reached|exhausted|exceeded|used|depleted|finished|refreshed|reset|resets|consumed|limit", "no|out|zero|remaining ~3 quota", "limit ~2 exhausted",
        "limit will|resets|reset", "limit|limits|quota|allowance to reset|refresh|renew", "limit reached|hit|exceeded ~2 resets|reset|upgrade", "exceed|exceeds|exceeded ~1 accounts rate limit", "allowance ~3 exceeded|exhausted|reached|used", "premium ~2 request|requests|interactions ~4 allowance|limit|quota|exceeded|used|exhausted", "free ~2 usage|quota|tier|allowance|limit|messages|requests ~6 exceeded|used|exhausted|reached|ended|over",
        "used ~2 all ~6 usage|quota|allowance|requests|messages|prompts|tokens", "access terminated", "fair use|usage", "out of ~3 usage|requests|messages|prompts|tokens", "limit ~1 of # ~3 requests|messages|prompts|tokens", "exceeded ~4 usage",
        "free models per day", "blocking limit", "达 ~4 限额", "限额 ~4 达|到|用|尽|超|重|将", "超 ~6 限额", "用完|尽 ~6 限额", "配额", "额度", "使用上限", "用量", "使用量", "次数",
        "límite ~3 uso|sesión|semanal", "limite ~3 uso|utilisation|usage|atteinte|atingido|semanal", "nutzungslimit", "limit ~2 erreicht", "上限 ~3 達", "利用制限",
    ],
    /// A budget of a minute or less.
    Minute => [
        "per minute|min|second|sec", "too many tokens", "tpm", "rpm", "itpm", "otpm", "qps", "rps", "tps", "qpm", "perminute", "a minute", "# requests ~3 minute|second", "burst", "every|each minute|second", "calls|requests|queries|tokens|messages ~1 minute|second", "1m|60s|1min|10s|1s ~2 limit|window", "minute ~2 limit|quota|window|rate",
        "每分钟", "每分", "每秒", "分間",
    ],
    Day => ["per day", "tpd", "rpd", "perday", "daily", "todays", "limit|limits|quota|allowance|usage|requests|messages|used ~4 today", "today ~4 limit|quota|allowance", "24h|24hr|24hrs|24hours ~2 limit|quota|window", "per ~1 24 hours", "day ~1 limit|quota", "calls|requests|queries|tokens|messages day", "每日", "每天", "今日", "当日"],
    /// Longer than a day.
    Month => ["this month", "monthly", "per month", "weekly", "per week", "this week", "calls|requests|queries|tokens|messages month|week", "billing cycle|period", "每周", "每月", "本月"],
    Concurrency => ["concurrency", "concurrent", "parallel", "simultaneous", "max parallel", "too many ~3 connections|sessions|streams|running|active", "并发"],
    /// Raised its own rate too fast.
    RampUp => ["increased too quickly|fast|rapidly", "rate growth|increase", "smooth|scale requests more", "ramp"],
    Throttle => [
        "rate limit|limits|limited|limiting|exceeded|quota|limiter", "ratelimit", "ratelimited", "too many ~2 requests|tokens|calls|attempts", "throttl", "throttle", "throttled", "throttling", "throttles", "throttlingexception",
        "request|requests|token|tokens ~2 limit ~2 exceeded|reached", "too ~1 fast|quickly|frequent|frequently|often", "request ~2 rate", "speed|request|requests ~2 limited", "back off", "请求过多", "频繁", "限流", "速率", "频率", "请求数", "レート制限", "résource épuisée", "quota exceeded", "limitation",
    ],
    /// A restriction that a person must lift.
    FairUse => ["fair use|usage policy", "restore access ~6 submit", "submit a request ~4 restore", "request frequency has been limited"],
    /// The plan has no share of this model at all.
    LimitZero => ["limit 0", "doesnt|not|without|no ~2 have|include|in|has|a ~2 free ~1 tier", "no free ~1 tier"],
    /// Permanent for this copy of the login.
    AuthDead => [
        "refresh token ~8 used|reused|revoked|expired|invalid|found", "invalid grant", "token|access ~4 revoked", "log|sign|logged|signed|login ~1 in again", "run ~3 login", "please ~2 login|log|sign", "not logged in", "no access to ~4 found", "not be refreshed", "account ~5 deactivated|disabled|banned|terminated|blocked|locked",
        "organization|workspace|project ~4 disabled|deactivated|deleted", "restricted access", "access ~3 restricted|suspended", "api ~1 key|keys ~4 invalid|incorrect|expired|revoked|disabled|deleted|valid|missing|required|found|provided|unauthorized", "invalid|incorrect|wrong|missing|bad|unknown|no|expired|malformed ~2 key", "invalid|incorrect x api key",
        "not ~1 allowed ~3 organization|org|workspace", "location|country|territory|region ~3 not ~1 supported|available|allowed", "no ~2 auth|authentication|credential|credentials", "missing environment variable", "requires|require ~2 setting|set ~6 env|environment var|variable", "not eligible for", "invalid ~1 api ~1 key", "apikey", "missing ~2 authentication|authorization|credentials", "reauthenticate", "requires re authentication",
        "entitlement error", "密钥", "未登录", "令牌无效",
    ],
    /// A refresh may mend it.
    AuthExpired => ["token ~3 expired", "expired ~2 token|credentials|jwt|session", "session ~6 expired", "credentials ~3 expired", "jwt ~2 expired", "obtain a new token", "refresh your ~2 token", "bearer token ~6 invalid|expired"],
    Auth => [
        "authentication", "authenticate", "authenticated", "authorize|authorized", "unauthorized", "unauthorised", "unauthenticated", "permission|permissions ~2 denied|error|required|insufficient", "access denied|forbidden", "forbidden", "not ~2 access|permission|authorized",
        "invalid|bad|incorrect ~2 token|credentials|credential|bearer|authorization", "bearer token", "auth error|failed|unavailable", "login required|failed", "unrecognized client", "signature does not match", "身份验证", "鉴权", "认证失败", "无权",
    ],
    Timeout => [
        "timed out", "timeout", "time out", "timeouts", "deadline exceeded|expired", "etimedout", "esockettimedout", "took too long", "no response ~4 within|after|for", "did not ~3 respond|start ~4 within|in time", "stalled", "超时", "タイムアウト",
    ],
    /// No connection came about.
    Unreached => [
        "econnrefused", "enotfound", "eai again", "fetch failed", "failed to connect|fetch", "connection error|refused", "connect error", "connecterror", "upstream connect error", "reset reason", "getaddrinfo", "name resolution",
        "dial tcp|udp", "no such host", "server misbehaving", "unable to connect|reach", "could not connect|reach|resolve", "host ~2 unreachable", "apiconnectionerror", "error sending request",
    ],
    Transport => [
        "econnreset", "econnrefused", "enotfound", "econnaborted", "epipe", "eai again", "eproto", "hang up", "fetch failed", "failed to fetch|connect|send", "connection|connections|connect|socket ~4 error|refused|reset|closed|aborted|lost|dropped|failed|terminated|interrupted|broken|broke|attempts",
        "connect error", "connecterror", "network ~2 error|failure|failed|issue|connection|lost", "unexpected eof|end", "eof", "stream ~4 disconnected|closed|ended|interrupted|incomplete|cut|aborted|error|reset|terminated", "error sending request", "other side closed", "premature close|end", "type error terminated", "goaway", "forcibly|remotely closed", "actively refused",
        "upstream connect error", "reset reason", "before headers", "bad gateway", "getaddrinfo", "name resolution", "dns", "certificate", "ssl|tls ~3 error|failed|verify|handshake", "proxy ~2 error|failed|connect", "incomplete ~2 read|response|stream|body", "peer closed", "protocol error", "server disconnected",
        "empty ~2 response|reply|body|stream|completion", "no ~1 output|content|text|response generated|returned|received|produced", "not valid json", "malformed function|tool call", "no body", "und err", "without ~3 response completed", "payload ~2 not complete|completed", "did not ~2 provide|return|produce|contain ~3 message|messages|content|output|text|answer", "connection|websocket ~1 limit reached", "broken pipe", "host ~2 unreachable", "origin ~2 unreachable|down|error", "json parse error", "json parsing failed", "error decoding response", "could not connect|reach",
        "unable to connect|reach", "apiconnectionerror", "disconnected", "网络错误", "连接失败",
    ],
    /// This machine has no way out.
    LocalNetwork => [
        "cant assign requested address", "cannot assign requested address", "network ~1 unreachable|down", "enetunreach", "enetdown", "eaddrnotavail", "ehostunreach", "no route to host", "no internet", "internet disconnected", "offline", "internet connection", "waiting for network",
        "all connection attempts failed",
    ],
    ModelMissing => [
        "model|models|deployment ~8 not ~2 found|exist|supported|available|accessible|enabled|allowed|have", "model|deployment ~4 doesnt|cannot|isnt ~2 exist|found|available|supported|access", "model ~10 isnt ~1 supported|available", "unknown|unsupported|invalid|nonexistent ~1 model|deployment",
        "not ~2 valid model|deployment", "no endpoints ~2 found|available", "no such model|deployment", "model ~3 unavailable ~3 region|country|location", "issue with the selected model", "no allowed providers", "deployment ~6 not exist", "model ~4 deprecated|retired|decommissioned|discontinued|removed|sunset", "access ~4 to model", "模型不存在", "不支持该模型",
    ],
    /// The request's shape, in the words of validators: no word beside them makes it anything else.
    BadShape => [
        "invalid json payload", "unknown name ~4 at", "extra inputs", "should match pattern", "input should be", "unrecognized request argument", "invalid schema for function", "json schema is invalid",
        "unsupported parameter|value", "unknown parameter", "tools # ~1 function ~1 name", "failed to deserialize ~6 body|json|request",
    ],
    BadRequest => [
        "invalid request|argument|parameter|params|param|schema|json|value|input|type|format", "bad request", "validation error|exception|failed", "not found", "unsupported", "unrecognized", "unknown parameter|field|name", "malformed", "invalid", "missing required", "must be", "not supported", "参数", "不支持",
    ],
    /// The caller has tried several times already.
    RetriesSpent => ["exceeded retry limit", "retries exhausted|exceeded", "max|maximum retries ~2 exceeded|reached", "retried # times", "gave up after", "too many failed attempts"],
}

/// Signs found, as a set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Signs(u64);

const _: () = assert!(TABLE.len() <= 64, "one bit for each sign");

static BOOK: LazyLock<Phrasebook> = LazyLock::new(|| Phrasebook::new(TABLE, &["rate"]));

impl Signs {
    /// Reads prose or typed names.
    pub(super) fn of(text: &str) -> Self {
        Self(BOOK.meanings(text))
    }

    pub(super) fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) fn with(self, sign: Sign) -> Self {
        Self(self.0 | 1 << sign as u8)
    }

    pub(super) fn has(self, sign: Sign) -> bool {
        self.0 & (1 << sign as u8) != 0
    }

    pub(super) fn any(self, signs: &[Sign]) -> bool {
        signs.iter().any(|sign| self.has(*sign))
    }
}
